"""Whether the engines work at all: invented credentials that each must find, and texts in which none may find any.

The credentials are put together at run time, so that no file has one in it.
"""

from __future__ import annotations

import base64
import hashlib
import string

from funes.secrets import gap_rules, kingfisher
from funes.secrets.findings import EngineError, Finding

_ALPHABET = string.ascii_letters + string.digits


def self_test() -> list[str]:
    """Test both engines.

    Returns:
        One sentence for each fault; empty when both engines are there and find what they must.
    """
    faults = [
        f"The own rules miss an invented {name}."
        for name, text, secret in _own()
        if not _covers(gap_rules.scan(text), text, secret)
    ]
    faults += [f"The own rules flag {name}." for name, text in _harmless() if gap_rules.scan(text)]
    try:
        engine = kingfisher.engine()
        faults += [
            f"Kingfisher misses an invented {name}."
            for name, text, secret in _vendors()
            if not _covers(engine.scan(text), text, secret)
        ]
        faults += [f"Kingfisher flags {name}." for name, text in _harmless() if engine.scan(text)]
    except kingfisher.EngineUnavailableError as error:
        faults.append(f"Kingfisher cannot be used: {error.reason}.")
    except EngineError as error:
        faults.append(f"Kingfisher does not work: {error.reason}.")
    return faults


def _covers(findings: list[Finding], text: str, secret: str) -> bool:
    """Whether the findings cover every character of the secret."""
    start = text.index(secret)
    covered = {position for finding in findings for position in range(finding.start, finding.end)}
    return covered.issuperset(range(start, start + len(secret)))


def _invent(name: str, length: int, alphabet: str = _ALPHABET) -> str:
    """Characters that look random and are the same at each call."""
    digest = b"".join(
        hashlib.sha512(f"funes canary {name} {block}".encode()).digest() for block in range(1 + length // 64)
    )
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:length])


def _own() -> list[tuple[str, str, str]]:
    """What our rules must find: its name, a text, and the secret in it."""
    token, password = _invent("token", 40), "Q7-" + _invent("password", 9) + "!"
    body = "\n".join(_invent(f"key {line}", 64) for line in range(6))
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    prefixed = "gh" + "p_" + _invent("prefixed", 36)
    wrapped = base64.b64encode(f"export SERVICE_TOKEN={token}\n".encode()).decode()
    return [
        ("prefixed token", f"remote: {prefixed} accepted", prefixed),
        ("environment variable", f"USER=dev\nSERVICE_TOKEN={token}\nTERM=xterm", token),
        ("header", f"> Authorization: Bearer {token}", token),
        ("JSON field", f'{{\\"api_key\\": \\"{token}\\"}}', token),
        ("flag", f"tool login --password {password} --quiet", password),
        ("URL password", f"postgresql://app:{password}@db.internal/app", password),
        ("password in prose", f"the admin password is {password} for now", password),
        ("private key", key, body),
        ("base64 of a secret", f"$ base64 .env\n{wrapped}\n", wrapped),
    ]


def _vendors() -> list[tuple[str, str, str]]:
    """What Kingfisher must find, with context and without."""
    stripe = "sk_" + "live_51" + _invent("stripe", 97)
    sendgrid = "SG" + f".{_invent('sendgrid', 22)}.{_invent('sendgrid key', 43)}"
    mail = "key-" + _invent("mailgun", 32, "0123456789abcdef")
    return [
        ("Stripe key", f"charge failed for {stripe}", stripe),
        ("SendGrid key", f"SENDGRID_API_KEY={sendgrid}", sendgrid),
        ("Mailgun key", f"MAILGUN_API_KEY={mail}", mail),
    ]


def _harmless() -> list[tuple[str, str]]:
    """What no engine may flag."""
    return [
        ("a commit", f"commit {_invent('commit', 40, '0123456789abcdef')}\nAuthor: Ana <ana@corp.dev>"),
        ("a placeholder", "export SERVICE_TOKEN=<your token>\npassword: ${DB_PASSWORD}"),
        ("code", "self.token = token or self._load_token(path)"),
    ]
