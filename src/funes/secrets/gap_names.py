"""What a variable, field, flag or header name says about its value."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Kind = Literal["", "password", "secret"]

KEYWORDS = {
    literal: re.compile(literal + unless)
    for literal, unless in {
        "pass": r"(?!ed\b|es\b|ing\b|ive|age|eng|port\b|thr|_thr)",
        "pw": r"(?:d(?![a-z])|(?![a-z]))",
        "secret": r"(?!ar[iy])",
        "token": r"(?!i[sz]|s\b)",
        "key": r"(?!board|word|down|up\b|frame|stroke)",
        "cred": r"(?!it)",
        "auth": r"(?!or(?!i[sz]ation\b)|enticat)",
        "_pat": r"(?![ht])",
        " pat ": "",
    }.items()
}
"""Lower-case literals, one of which every name has that the rules take for a secret's, with what must not follow."""

_PASSWORD = re.compile(
    r"""
      passw(?:or[dt]|d) | pass_?phrase | pass_?code | pwd | pw$ | (?:^|[_.-])pass$
    | (?:db|user|my|root|admin|smtp|ftp|mail|ldap|sql|redis|pg|ssh|wifi|login|proxy|auth|svc|app|mongo|postgres)pass$
    """,
    re.VERBOSE,
)

SECRET_KEYS = frozenset(
    [
        *("access", "account", "admin", "age", "api", "app", "application", "auth", "client", "deploy", "encryption"),
        *("license", "master", "private", "secret", "service", "session", "shared", "signing", "storage"),
    ]
)
"""Words that make a key a secret one."""

_SECRET = re.compile(
    rf"""
      secret | token | credential | mnemonic | (?:{"|".join(sorted(SECRET_KEYS))})[_.-]?key
    | [_.-]key$ | ^key$ | key[_.-]data$ | _pat$ | [_.-]auth$ | ^auth$ | authorization$ | ^creds?$ | [_.-]creds?$
    """,
    re.VERBOSE,
)

# The last word of a name that is about a secret without being one (`token_count`, `secret_name`, `key_path`).
_ABOUT = re.compile(
    r"""(?:^|[_.-])(?:
      id|ids|name|names|path|paths|file|files|filename|url|uri|urls|type|types|kind|count|counts|counter|length|len|size
    |expiry|expires|expired|expiration|exp|ttl|timeout|seconds|minutes|hours|days|age|date|time|at|created|updated
    |header|headers|limit|limits|tokens|max|min|ratio|rate|hash|hashes|digest|sum|checksum|index|idx|version|field
    |fields|policy|policies|status|state|ref|refs|arn|location|dir|directory|folder|prefix|suffix|regex|pattern|re
    |algorithm|alg|algo|endpoint|hits|miss|misses|hint|label|format|class|enabled|disabled|required|usage|used|reset
    |usages|provider|manager|store|handler|helper|mode|level|scope|scopes|audience
    |issuer|owner|column|table|row|rows|list|map|set|dict|array|schema|input|output|callback|error|errors|message
    |stats|info|metadata|config|settings|options|sha|sha1|sha256|md5|fingerprint|thumbprint|changed|valid|invalid
    |validator|validation|check|checker|strength|rotation|generator|source|target|template|page|link|form|screen
    |model|names?pace|total|cost|budget|window|price|ids?_?list|stdin)$""",
    re.VERBOSE,
)

# Keys and tokens that are no secret, and words that only contain one of the keywords.
_PUBLIC = re.compile(
    r"""
      (?<![a-z])(?:cache|primary|foreign|sort|partition|public|pub|idempotency|publishable|row|range|group|dedup
        |dedupe|shard|translation|i18n|l10n|hot|object|routing|unique|composite|dict|map|s3|lookup|index|bucket
        |restore|registry|config|settings?|json|yaml|sync|lock|state|message|issue|project|event|query|react|node
        |item|feature|flag|search|column|field|hash|known|trusted|gpg|surrogate|natural|business|legend|metric|label
        |menu|shortcut|arrow|function|modifier|parent|entity|ordering|order|grouping|join|merge|match|resource
        |cursor|version|etag|ssh_public|host_public|section|topic|record|storage_object|memo)[_.-]?keys?(?![a-z])
    | (?<![a-z])(?:page|continuation|next|pagination|cursor|sync|resume|cancel|cancellation|fencing|bos|eos|pad|unk
        |mask|sep|cls|stop|special|start|end|prompt|completion|thinking|reasoning|input|output|last|first|prev
        |previous|current|per|num|max|query|text|design|style|theme|color)[_.-]?tokens?(?![a-z])
    | (?<![a-z])(?:first|second|third|render|multi|single|two|one|last|next|each|final|dry|this|that|forward|backward
        |tests?|all|full|same|by|com|sur|tres|encom|under|over)_?pass$
    | ^data-[a-z-]*key$ | tokeni[sz] | csrf | xsrf | keyboard | keyword | keyid | key_id | access_?key_?id
    | secretid | secret_?name
    | passthrough | pass_through | tool_?use | monkey | turkey | hockey | donkey | jockey | whiskey | keys?tone
    | compass | bypass | passed | passing | passive | passes | passenger | passport | author(?!i[sz]ation) | secretary
    """,
    re.VERBOSE,
)

_CAMEL_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=4096)
def secret_kind(name: str) -> Kind:
    """What kind of secret a name announces.

    Args:
        name: a variable, field, flag or header name in any case style; at most about 100 characters.

    Returns:
        `password` for what people choose, `secret` for what machines make, empty for a name that announces none.
    """
    snake = _CAMEL_BORDER.sub("_", name).lower().strip("_.-")
    if _ABOUT.search(snake) or _PUBLIC.search(snake):
        return ""
    if _PASSWORD.search(snake):
        return "password"
    return "secret" if _SECRET.search(snake) else ""
