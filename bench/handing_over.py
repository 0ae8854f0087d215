"""What a way out of a long session brings and costs: facts found in a text, tokens priced, intervals. Pure functions.

Prices are in units of one input token, so a price list's row for a model is enough: with input at 1, cache writes at
1.25, cache reads at 0.1 and output at 5.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

CHARACTERS_PER_TOKEN = 4
"""The rule of thumb for English and code; the same for every arm, so ratios do not depend on it."""

WINDOW = 1000
"""Characters within which all patterns of a fact have to match: a fact is said in one place."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a token costs, relative to one of uncached input."""

    input: float = 1.0
    cache_write: float = 1.25
    cache_read: float = 0.1
    output: float = 5.0


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens paid for, by kind."""

    cache_write: float = 0.0
    cache_read: float = 0.0
    output: float = 0.0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.cache_write + other.cache_write, self.cache_read + other.cache_read, self.output + other.output
        )

    def __sub__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.cache_write - other.cache_write, self.cache_read - other.cache_read, self.output - other.output
        )

    def cost(self, prices: Prices) -> float:
        """Their price, in tokens of uncached input."""
        return self.cache_write * prices.cache_write + self.cache_read * prices.cache_read + self.output * prices.output


@dataclass(slots=True)
class Conversation:
    """An agent's requests, each of which reads everything before it from the cache.

    Attributes:
        context: tokens that the next request finds in the cache.
        paid: tokens paid so far.
    """

    context: float = 0.0
    paid: Tokens = field(default_factory=Tokens)

    def request(self, added: float, output: float) -> None:
        """One request to the model.

        Args:
            added: tokens that are new in its input: a prompt, the result of a tool; they are written to the cache.
            output: tokens that the model writes; they are part of the next request's context.
        """
        self.paid += Tokens(cache_write=added, cache_read=self.context, output=output)
        self.context += added + output


@dataclass(frozen=True, slots=True)
class Work:
    """The task itself, the same in every arm.

    Attributes:
        base: tokens of the agent's own prompt, its tools and the task.
        requests: how many it takes.
        added: tokens of tool results that come with each request after the first.
        output: tokens that the model writes in each.
    """

    base: float = 15_000
    requests: int = 20
    added: float = 1_000
    output: float = 300

    def run(self, before: float = 0.0, calls: Sequence[tuple[float, float]] = ()) -> Tokens:
        """Tokens of the whole task.

        Args:
            before: tokens put in front of the work in addition: a handoff, a session, tool definitions.
            calls: of a tool, made before the work: tokens of each call and of its result.
        """
        conversation = Conversation()
        new = self.base + before
        for call, result in calls:
            conversation.request(new, call)
            new = result
        for number in range(self.requests):
            conversation.request(new if number == 0 else self.added, self.output)
        return conversation.paid


def tokens(text: str) -> float:
    """How many tokens a text has, about."""
    return len(text) / CHARACTERS_PER_TOKEN


def covered(patterns: Sequence[str], text: str, window: int = WINDOW) -> bool:
    """Whether a text states a fact: all patterns match near one another.

    Args:
        patterns: regular expressions, case ignored, `.` matching line ends too.
        text: what an agent would read.
        window: characters within which they have to match.
    """
    compiled = [re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns]
    first = compiled[0]
    for match in first.finditer(text):
        start = max(0, match.start() - window)
        near = text[start : match.end() + window]
        if all(_close(pattern, near, match.start() - start, match.end() - start, window) for pattern in compiled[1:]):
            return True
    return False


def _close(pattern: re.Pattern[str], text: str, start: int, end: int, window: int) -> bool:
    """Whether a match begins and ends within `window` of what lies between `start` and `end`."""
    return any(
        found.end() >= start - window and found.start() <= end + window and found.end() <= end + window
        for found in pattern.finditer(text)
    )


def queries(task: Sequence[str]) -> list[str]:
    """What an agent asks its memory: the topic alone, then the topic with each further sentence of the task.

    Args:
        task: lines, the first of which names the topic ("You take over …").
    """
    topic = re.sub(r"^You take over (the )?(work on )?", "", task[0]).rstrip(".")
    topic = topic[:1].upper() + topic[1:]
    return [topic, *(f"{topic}: {line}" for line in task[1:])]


def bootstrap(
    groups: Sequence[Sequence[float]],
    statistic: Callable[[Sequence[Sequence[float]]], float],
    rounds: int = 10_000,
    seed: int = 1,
) -> tuple[float, float]:
    """The 95 % interval of a statistic over groups, by drawing groups with replacement.

    Args:
        groups: what is drawn: a bundle's numbers.
        statistic: of a list of groups; NaN (nothing covered, say) is left out.
        rounds: how often to draw.
        seed: of the draws.

    Returns:
        The 2.5th and the 97.5th percentile; NaN when no draw has a value.
    """
    chance = random.Random(seed)
    values = []
    for _ in range(rounds):
        value = statistic(chance.choices(groups, k=len(groups)))
        if value == value:
            values.append(value)
    if not values:
        return float("nan"), float("nan")
    values.sort()
    return values[int(0.025 * (len(values) - 1))], values[int(0.975 * (len(values) - 1))]
