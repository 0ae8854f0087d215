"""Credentials that a name announces.

`NAME=value`, `"name": "value"`, `Authorization: Bearer value`, `--flag value`, `<name>value</name>` and the like, and
sentences (`gap_prose`). Every occurrence of a keyword is looked at once, in windows of a fixed size around it, so that
the work is linear in the length of the text whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from funes.secrets.findings import GENERIC, POSITIONAL, Finding, Patience
from funes.secrets.gap_names import KEYWORDS, SECRET_KEYS, Kind, secret_kind
from funes.secrets.gap_prose import find_in_sentence
from funes.secrets.gap_values import (
    LONGEST,
    QUOTE,
    character_classes,
    decode_base64,
    is_composed,
    is_mixed,
    is_placeholder,
    plausible_password,
    plausible_token,
)

RULES = {
    "password": "a value behind a name that says password",
    "secret-value": "a value behind a name that says secret, token or key",
    "auth-header": "the credential of an Authorization or API key header",
    "basic-auth": "base64 of user:password behind Basic",
    "cli-secret": "the value of --password, --token and the like",
    "netrc": "a password in the format of netrc(5)",
}
"""Rules of this module, and what each finds."""

_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_NAME_BEFORE = 48

# What may stand between a name and its value; the groups name the forms, some of which need a further look.
_SEPARATOR = re.compile(
    rf"""
      (?P<rest>[A-Za-z0-9_.\-]{{0,40}}+)
      (?:
        (?P<typed> :[ ]{{0,2}}&?(?:'static[ ])?[A-Za-z_][\w.\[\]<>|?]{{0,40}}[ ]{{1,2}}=[ ]{{1,2}}(?={QUOTE}) )
      | (?P<assign> {QUOTE}?[\])]?[ \t]{{0,40}} (?: := | => | ==? | :(?!:) | \\u003[dD] | %3[dD] )
            (?: (?:\\{{1,2}}[tnr]){{1,2}}[ ]{{0,4}} | [ \t]{{0,20}} (?:!\w{{1,20}}[ ]|[|>][-+]?\n[ \t]{{1,20}})? ) )
      | (?P<pair> {QUOTE}[ ]{{0,3}},[ ]{{0,3}}(?={QUOTE}) )
      | (?P<field> {QUOTE}?,?\s{{1,40}}{QUOTE}?value{QUOTE}?[ ]{{0,3}}[:=][ ]{{0,3}} )
      | (?P<element> > )
      | (?P<call> \([ ]?(?={QUOTE}) )
      | (?P<cell> [ ]{{0,20}}\|[ ]{{0,3}} )
      | (?P<blank> [ \t]{{1,4}} )
      )
      (?:\x1b\[[0-9;]{{0,11}}m)?
      (?P<quote>{QUOTE})?
      (?:(?P<scheme>bearer|basic|token|apikey|ssws|bot|key|digest)[ ]{{1,2}})?
    """,
    re.VERBOSE | re.IGNORECASE,
)

_BARE_VALUE = re.compile(r"[^\s\"'`\\,;&<>()\[\]{}|\x1b]{6,}+")
_WIDE_VALUE = re.compile(r"[^\s\"'`\\\x1b]{6,}+")

# What lets a value follow a name after a blank alone.
_NETRC_BEFORE = re.compile(r"\blogin\s{1,8}\S{1,100}\s{1,40}\Z")
_SQL_BEFORE = re.compile(r"\b(?:WITH|ENCRYPTED|LOGIN|(?:USER|ROLE)\s{1,4}\S{1,64})\s{1,8}\Z", re.IGNORECASE)
_SETTER_BEFORE = re.compile(r"(?:\bENV|\bsetx|\bsetenv|\bset -[gUx]{1,3}|\bconfig(?:ure)?(?: set| --global){1,2}) \Z")
_ENV_BEFORE = re.compile(r"(?:\A|\n|\\n|\\t|[;&] ?|\bexport |\bENV |\bset |-e |[\"'`$]|\$env:)\Z")
_HEX_OR_UUID = re.compile(r"[0-9a-fA-F-]+\Z")
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,16})[ ]\Z")


def find_assignments(text: str, low: str) -> Iterator[Finding]:
    """Yield what the names in a text announce.

    Args:
        text: the text in ASCII.
        low: the same in lower case.
    """
    patience = Patience()
    done = 0
    for position, keyword in _keyword_positions(low):
        if position < done:
            continue
        done, finding = _look(text, position, keyword, patience)
        if finding is not None:
            yield finding


def _keyword_positions(low: str) -> list[tuple[int, str]]:
    """Where the keywords occur, in text order."""
    found = [
        (match.start(), keyword)
        for keyword, pattern in KEYWORDS.items()
        if keyword in low
        for match in pattern.finditer(low)
    ]
    found.sort()
    return found


def _look(text: str, position: int, keyword: str, patience: Patience) -> tuple[int, Finding | None]:
    """Judge one occurrence of a keyword.

    Returns:
        Where to go on, and what was found.
    """
    after = position + len(keyword.rstrip())
    if keyword == " pat ":
        return after, find_in_sentence(text, position, keyword)
    separator = _SEPARATOR.match(text, after)
    if separator is None:
        return after, find_in_sentence(text, position, keyword)
    name_end = separator.end("rest")
    name, name_start = _name(text, position, name_end)
    if separator["blank"] is not None and not _takes_blank(text, name, name_start, separator["quote"]):
        return max(after, name_end), find_in_sentence(text, position, keyword)
    kind = secret_kind(name)
    if name == "PASS" and separator["assign"] != "=":  # a test that passed
        return name_end, None
    if name.lower() in ("key", "token") and (word := _WORD_BEFORE.search(text, max(0, name_start - 18), name_start)):
        kind = secret_kind(f"{word[1]}_{name}")  # "cache key: …" is none
        if word[1].lower() in SECRET_KEYS:
            name = f"{word[1]}_{name}"
    if not kind:
        return name_end, None
    found = _value(text, separator, kind, name, name_start, patience)
    if found is None:
        return name_end, find_in_sentence(text, position, keyword) if separator["assign"] else None
    return found.end, found


def _name(text: str, position: int, end: int) -> tuple[str, int]:
    """The whole name around a keyword, and where it starts."""
    before = text[max(0, position - _NAME_BEFORE) : position]
    start = position - len(before) + len(before.rstrip(_NAME_CHARACTERS))
    if start < position and text[start - 1 : start] == "\\" and text[start] in "ntr":
        start += 1
    return text[start:end], start


def _takes_blank(text: str, name: str, start: int, quote: str | None) -> bool:
    """Whether a value may follow the name after a blank alone: `--flag value`, netrc, SQL, `setx NAME value`."""
    if name.startswith("-") and name.strip("-"):
        return True
    if name.lower() == "password":
        before = _SQL_BEFORE if quote else _NETRC_BEFORE
        return before.search(text, max(0, start - 160), start) is not None
    if quote and text.endswith("#define ", 0, start):
        return True
    return _SETTER_BEFORE.search(text, max(0, start - 24), start) is not None


def _value(
    text: str, separator: re.Match[str], kind: Kind, name: str, name_start: int, patience: Patience
) -> Finding | None:
    """The credential behind a separator, None when what follows is none."""
    start, end, literal = _span(text, separator, name, name_start)
    if start == end:
        return None
    found = _judge(text, (start, end, literal), separator, kind, name, name_start)
    if found is None and (run := patience.run(start, end)):
        return Finding(*run, "secret-value", GENERIC)
    return found


def _judge(
    text: str, span: tuple[int, int, bool], separator: re.Match[str], kind: Kind, name: str, name_start: int
) -> Finding | None:
    """The credential in a span, None when it is a placeholder, code, words or a number."""
    start, end, literal = span
    before = text[name_start - 1 : name_start]
    value = text[start:end]
    if is_placeholder(value):
        return None
    if not separator["quote"]:
        value = value.rstrip(".:;,")
        if before in ("?", "&"):
            value = value.partition("#")[0]
        if value == name or text[end : end + 1] in ("(", "["):
            return None
    if not _form_fits(text, separator, before, value, end):
        return None
    found = (start, start + len(value))
    scheme = (separator["scheme"] or "").lower()
    if scheme == "basic" and ":" in (decode_base64(value) or ""):
        return Finding(*found, "basic-auth", POSITIONAL)
    if name == "password" and separator["blank"] and not separator["quote"]:
        return Finding(*found, "netrc", POSITIONAL)
    if not (plausible_token(value, literal) or (kind == "password" and plausible_password(value, literal))):
        return None
    if name.lower() == "key" and not _bare_key(value, in_query=before in ("?", "&")):
        return None
    if name.startswith("--"):
        return Finding(*found, "cli-secret", POSITIONAL)
    if scheme or "uthorization" in name:
        return Finding(*found, "auth-header", POSITIONAL)
    return Finding(*found, "password" if kind == "password" else "secret-value", GENERIC)


def _span(text: str, separator: re.Match[str], name: str, name_start: int) -> tuple[int, int, bool]:
    """Where the value stands, and whether only a literal can stand there; an empty span when there is none."""
    start = separator.end()
    before = text[name_start - 1 : name_start]
    quote = separator["quote"]
    if quote and (end := _quoted_end(text, start, quote)):
        return start, end, not quote.endswith("`")
    assigned = separator["assign"]
    if assigned == ":" and before == ":":  # a part of an ARN or a URN
        return start, start, False
    query = before in ("?", "&")
    literal = assigned == "=" and (name.isupper() or query)
    wide = quote or (literal and not query and _ENV_BEFORE.search(text, max(0, name_start - 8), name_start))
    match = (_WIDE_VALUE if wide else _BARE_VALUE).match(text, start, start + LONGEST)
    return start, match.end() if match else start, literal


def _form_fits(text: str, separator: re.Match[str], before: str, value: str, end: int) -> bool:
    """Whether the forms that code and tables also have look enough like a name with its value.

    Args:
        text: the text.
        separator: what stands between the name and the value.
        before: the character before the name.
        value: the candidate.
        end: where the value ends in the text.
    """
    if separator["element"]:
        return before in ("<", ":") and text.startswith("</", end)
    if separator["pair"]:
        return before in ('"', "'", "`") and is_mixed(value)
    if separator["call"]:
        return is_mixed(value) or character_classes(value) >= 3
    if separator["cell"]:
        return is_mixed(value) and any(c.isdigit() for c in value)
    return True


def _bare_key(value: str, in_query: bool) -> bool:
    """Whether the value of something only called "key" is a secret, and no key of a cache, a table or a list."""
    if is_composed(value):
        return False
    return in_query or (len(value) >= 20 and is_mixed(value) and not _HEX_OR_UUID.match(value))


def _quoted_end(text: str, start: int, quote: str) -> int:
    """Where the string that starts behind `quote` ends; 0 when it is no single value: it has blanks or no end."""
    end = text.find(quote, start, start + LONGEST)
    while end > 0 and quote[0] != "\\" and text[end - 1] == "\\":
        end = text.find(quote, end + 1, start + LONGEST)
    if end - start < 6 or any(blank in text[start:end] for blank in " \n\t"):
        return 0
    return end
