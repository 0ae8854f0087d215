"""Credentials that a syntactic position announces: the userinfo of a URL, a cookie, `curl -u`, `.pgpass`, a JWK.

Each rule has a trigger that `re` finds as fast as a literal, and reads a bounded stretch of text behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from funes.secrets.findings import POSITIONAL, Finding
from funes.secrets.gap_values import (
    QUOTE,
    entropy,
    is_code,
    is_placeholder,
    is_words,
    plausible_token,
)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ContextRule:
    """One syntactic position.

    Attributes:
        name: name of the rule.
        trigger: literal without which the rule cannot match; a cheap test for a whole text.
        pattern: starts with a literal, so that a search for it is fast, and reads a bounded number of characters.
        spans: the credentials of a match: the text, the match, the start and end of what may be read -> their spans.
        source: where the position is documented.
        lower: whether trigger and pattern are matched against the text in lower case.
        reach: how far around a match the credentials may stand, in characters.
    """

    name: str
    trigger: str
    pattern: re.Pattern[str]
    spans: Callable[[str, re.Match[str], int, int], Iterator[Span]]
    source: str
    lower: bool = False
    reach: int = 0


def _if_token(text: str, match: re.Match[str], low: int, high: int) -> Iterator[Span]:
    """The value, when it is plausible as a token."""
    del low, high
    start, end = match.span("value")
    if plausible_token(text[start:end]):
        yield start, end


def _userinfo(text: str, match: re.Match[str], low: int, high: int) -> Iterator[Span]:
    """The password of a URL's userinfo."""
    del low, high
    start, end = match.span("value")
    value = text[start:end]
    if not (is_placeholder(value) or is_code(value, literal=True) or is_words(value, literal=True)):
        yield start, end


_COOKIE_PAIR = re.compile(r"([\w\-.]{1,64})=([^;\s\"'\\]{16,})")
_COOKIE_NAME = re.compile(r"sess|sid|auth|token|jwt|login", re.IGNORECASE)


def _cookies(text: str, match: re.Match[str], low: int, high: int) -> Iterator[Span]:
    """The values of the session cookies of a header line."""
    del low, high
    for pair in _COOKIE_PAIR.finditer(text, match.start("line"), match.end("line")):
        if _COOKIE_NAME.search(pair[1]) and plausible_token(pair[2]):
            yield pair.span(2)


_COMMANDS = {
    "curl": "http", "wget": "http", "http": "http", "xh": "http", "mysql": "mysql", "mysqldump": "mysql",
    "mysqladmin": "mysql", "mariadb": "mysql", "sshpass": "login", "redis-cli": "redis", "docker login": "login",
    "podman login": "login", "nerdctl login": "login", "oras login": "login", "registry login": "login",
    "az login": "login", "oc login": "login", "skopeo login": "login",
}  # fmt: skip
_LINE_END = re.compile(r"(?<!\\)(?:\n|\\n)")
_COMMAND_BEFORE = 400


def _command(before: str) -> str:
    """Which kind of command the text ends in, empty when it is none that takes a password."""
    last, kind = max((before.rfind(name + " "), kind) for name, kind in _COMMANDS.items())
    if last < 0 or before[last - 1 : last].isalnum() or _LINE_END.search(before, last):
        return ""
    return kind


def _command_line(text: str, match: re.Match[str], low: int, high: int) -> Iterator[Span]:
    """The password behind `-u user:`, `-p` or `-a` of a command that takes one there."""
    del low, high
    command = _command(text[max(0, match.start() - _COMMAND_BEFORE) : match.start() + 1])
    flag, gap = match["flag"], match["gap"]
    start, end = match.span("value")
    if command == "http":
        colon = text.find(":", start, end)
        wanted = flag != "-p" and 0 < colon < end - 3
        start = colon + 1
    elif command == "mysql":
        wanted = flag == "-p" and not gap and end - start >= 6
    elif command == "redis":
        wanted = flag == "-a" and end - start >= 6
    else:
        wanted = command == "login" and flag == "-p"
    if wanted and not is_placeholder(text[start:end]):
        yield start, end


def _pgpass(text: str, match: re.Match[str], low: int, high: int) -> Iterator[Span]:
    """The fifth field of a .pgpass line."""
    del low, high
    start, end = match.span("value")
    host = text[max(0, match.start() - 128) : match.start()].rpartition("\n")[2]
    if re.fullmatch(r"[\w.*-]{1,128}", host) and not is_placeholder(text[start:end]):
        yield start, end


_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_HEX_ONLY = re.compile(r"[0-9a-f]{40}")


def _near_aws_id(text: str, match: re.Match[str], low: int, high: int) -> Iterator[Span]:
    """A secret access key close to an access key id."""
    if "EXAMPLE" in match[0]:
        return
    for key in _AWS_SECRET.finditer(text, low, high):
        if entropy(key[0]) > 4.0 and not _HEX_ONLY.fullmatch(key[0]) and not is_placeholder(key[0]):
            yield key.span()


_JWK_PRIVATE = re.compile(rf"{QUOTE}(?:d|p|q|dp|dq|qi|k){QUOTE}\s{{0,3}}:\s{{0,3}}{QUOTE}([A-Za-z0-9_\-]{{16,}})")


def _jwk(text: str, match: re.Match[str], low: int, high: int) -> Iterator[Span]:
    """The private members of a JSON Web Key."""
    del match
    for member in _JWK_PRIVATE.finditer(text, low, high):
        yield member.span(1)


def _unless_placeholder(text: str, match: re.Match[str], low: int, high: int) -> Iterator[Span]:
    """The value, unless it stands for something else."""
    del low, high
    start, end = match.span("value")
    if not is_placeholder(text[start:end]):
        yield start, end


def _whole(text: str, match: re.Match[str], low: int, high: int) -> Iterator[Span]:
    """The value as it is."""
    del text, low, high
    yield match.span("value")


_PHRASE = (
    rf"[\w ]{{0,20}}{QUOTE}?[ ]{{0,3}}[:=]\s{{0,3}}{QUOTE}?(?P<value>[a-z]{{3,8}}(?: [a-z]{{3,8}}){{11,23}})(?![a-z ])"
)

CONTEXT_RULES: tuple[ContextRule, ...] = (
    ContextRule(
        "url-password",
        "://",
        re.compile(r"://[^\s:/@\"'`<>\\]{0,128}:(?P<value>[^\s/\"'`<>\\]{3,256})@(?=[A-Za-z0-9\[\-_*])"),
        _userinfo,
        "RFC 3986, section 3.2.1",
    ),
    ContextRule(
        "bearer-token",
        "bearer",
        re.compile(r"bearer\s{1,2}(?P<value>[A-Za-z0-9_\-.~+/=]{16,4096}+)"),
        _if_token,
        "RFC 6750, section 2.1",
        lower=True,
    ),
    ContextRule(
        "session-cookie",
        "cookie",
        re.compile(rf"cookie{QUOTE}?\s{{0,2}}:\s{{0,2}}(?P<line>[^\n\\]{{8,4096}}+)"),
        _cookies,
        "RFC 6265, section 4",
        lower=True,
    ),
    ContextRule(
        "sql-password",
        "identified by",
        re.compile(r"identified by (?:password )?\\{0,4}[\"'](?P<value>[^\s\"'`\\]{4,256}+)", re.IGNORECASE),
        _unless_placeholder,
        "MySQL reference manual: CREATE USER",
        lower=True,
    ),
    ContextRule(
        "basic-auth-pair",
        "auth=(",
        re.compile(
            rf"auth=\(\s?{QUOTE}[^\"'`\n]{{1,64}}{QUOTE},\s?{QUOTE}(?P<value>[^\s\"'`\\]{{4,256}}+)", re.IGNORECASE
        ),
        _userinfo,
        "Requests: authentication",
        lower=True,
    ),
    ContextRule(
        "url-signature",
        "sig",
        re.compile(
            r"sig(?:nature)?(?:(?<=[?&;]sig)|(?<=[?&;]signature)|(?<=[?&;]x-(?:amz|oss)-signature)"
            r"|(?<=[?&;]x-goog-signature))=(?P<value>[^&\s\"'`<>\\#]{8,2048}+)"
        ),
        _if_token,
        "Azure: shared access signatures; AWS and Google Cloud: presigned URLs",
        lower=True,
    ),
    ContextRule(
        "url-code",
        "code=",
        re.compile(r"code=(?<=[?&]code=)(?P<value>[^&\s\"'`<>\\#]{20,2048}+)"),
        _if_token,
        "Azure Functions: access keys; RFC 6749, section 4.1.2",
        lower=True,
    ),
    ContextRule(
        "command-password",
        " -",
        re.compile(rf" (?P<flag>-[pauU]|--user|--proxy-user)(?P<gap>[ =]?){QUOTE}?(?P<value>[^\s\"'`\\$]{{4,256}}+)"),
        _command_line,
        "curl(1), mysql(1), sshpass(1), redis-cli, docker login",
    ),
    ContextRule(
        "pgpass",
        ":",
        re.compile(r":(?:\d{4,5}|\*):[\w*\-]{1,64}:[\w*\-]{1,64}:(?P<value>\S{6,256}+)$", re.MULTILINE),
        _pgpass,
        "PostgreSQL documentation: the password file",
    ),
    ContextRule(
        "aws-secret-key",
        "A",
        re.compile(r"A(?:KIA|SIA|BIA|CCA)(?<![A-Z0-9]A...)[A-Z2-7]{16}(?![A-Z0-9])"),
        _near_aws_id,
        "AWS docs: unique identifiers of IAM",
        reach=600,
    ),
    ContextRule("json-web-key", "kty", re.compile(rf"kty{QUOTE}\s{{0,3}}:"), _jwk, "RFC 7518, section 6", reach=4096),
    ContextRule("seed-phrase", "mnemonic", re.compile("mnemonic" + _PHRASE), _whole, "BIP 39", lower=True),
    ContextRule(
        "seed-phrase",
        "phrase",
        re.compile("phrase(?:(?<=seed.phrase)|(?<=recovery.phrase)|(?<=backup.phrase))" + _PHRASE),
        _whole,
        "BIP 39",
        lower=True,
    ),
)


def find_in_context(text: str, low: str) -> Iterator[Finding]:
    """Yield what the positions in a text announce.

    Args:
        text: the text in ASCII.
        low: the same in lower case.
    """
    for rule in CONTEXT_RULES:
        searched = low if rule.lower else text
        if rule.trigger not in searched:
            continue
        done = 0
        for match in rule.pattern.finditer(searched):
            reached = min(len(text), match.end() + rule.reach)
            for start, end in rule.spans(text, match, max(done, match.start() - rule.reach), reached):
                yield Finding(start, end, rule.name, POSITIONAL)
            done = reached
