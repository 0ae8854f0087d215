"""What goes wrong with a memory elsewhere, each in one sentence and never with a token in it."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from funes.errors import FunesError

LOGIN = "run `hf auth login` or set HF_TOKEN"
_DETAIL_CHARACTERS = 160


class RemoteError(FunesError):
    """A remote memory cannot be read or written."""


class RemoteMissingError(RemoteError):
    """There is no such repository, revision or file, or not for this token."""


class RemoteDeniedError(RemoteError):
    """The remote wants a token, another one, or more rights."""


class RemoteBusyError(RemoteError):
    """The remote asks to come back later, or has trouble of its own.

    Attributes:
        wait: seconds that it asks to wait, 0 when it does not say.
    """

    wait = 0.0


class RemoteUnreachableError(RemoteError):
    """There is no connection, or it breaks."""


class RemoteMovedError(RemoteError):
    """Somebody else has committed since; the change has to be made again on top of that."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was being done, for the sentence.

    Attributes:
        repo: `<org>/<name>`.
        endpoint: the Hub's address, named in the sentence when it is not the public one.
        token: the token that was sent, so that it is kept out of the sentence; empty for none.
        token_name: where the token comes from.
        revision: what was asked for, empty for the main branch.
        writing: whether something was to be changed.
    """

    repo: str
    endpoint: str = ""
    token: str = ""
    token_name: str = ""
    revision: str = ""
    writing: bool = False

    @property
    def hub(self) -> str:
        """The Hub's name in a sentence."""
        host = self.endpoint.partition("://")[2]
        return "the Hub" if host in ("", "huggingface.co") else f"the Hub at {host.rpartition('@')[2]}"


def remote_fault(error: BaseException, asked: Asked) -> RemoteError | None:
    """Turn an exception of the Hub's client, of its HTTP library or of `urllib` into one of ours.

    Args:
        error: what was raised.
        asked: what was being done.

    Returns:
        The error to raise, None for an exception that is a fault of this program.
    """
    cause: BaseException | None = error
    while cause is not None:  # the client wraps what happens in its threads
        if isinstance(cause, RemoteError):
            return cause
        status, headers = _response(cause)
        if status:
            return _by_status(status, headers, asked)
        if _is_transport(cause):
            return RemoteUnreachableError(f"{_cap(asked.hub)} cannot be reached ({_reason(cause, asked)}).")
        cause = cause.__cause__
    return None


def _by_status(status: int, headers: Mapping[str, str], asked: Asked) -> RemoteError:
    code = headers.get("X-Error-Code") or ""
    hub, repo, token = asked.hub, asked.repo, f"the token in {asked.token_name}"
    if status == 401 and not asked.token:
        return RemoteDeniedError(
            f"{repo} does not exist on {hub}, or it is private and there is no token here: check the name, or {LOGIN}."
        )
    if status == 401:
        return RemoteDeniedError(
            f"{_cap(hub)} does not accept {token}, which is mistyped, expired or revoked; {LOGIN}."
        )
    if status == 403 and code == "GatedRepo":
        return RemoteDeniedError(f"{repo} is open only to those who asked for access on its page on {hub}.")
    if status == 403:
        deed = "write to" if asked.writing else "read"
        who = f"{_cap(token)} may not {deed}" if asked.token else f"Without a token nobody may {deed}"
        return RemoteDeniedError(f"{who} {repo} on {hub}; use one that may.")
    if status == 404 and code == "RevisionNotFound":
        return RemoteMissingError(f"{repo} on {hub} has no revision {asked.revision or 'main'}.")
    if status == 404 and code == "EntryNotFound":
        return RemoteMissingError(f"A file of {repo} on {hub} is gone; run the command again.")
    if status == 404:
        seen = f" that {token} may see" if asked.token else ""
        return RemoteMissingError(
            f"There is no dataset {repo} on {hub}{seen}; check the name, or ask its owner for access if it is private."
        )
    if status == 412:
        return RemoteMovedError(f"{repo} on {hub} was changed by somebody else in the meantime; run the command again.")
    if status == 429:
        wait = headers.get("Retry-After") or ""
        when = f"in {wait} seconds" if wait.isdigit() else "in a few minutes"
        fault = RemoteBusyError(f"{_cap(hub)} had too many requests from here; run the command again {when}.")
        fault.wait = float(wait) if wait.isdigit() else 0.0
        return fault
    if status >= 500 or status == 408:
        return RemoteBusyError(f"{_cap(hub)} has trouble of its own (HTTP {status}); run the command again later.")
    said = _clean(headers.get("X-Error-Message") or "", asked)
    return RemoteError(f"{_cap(hub)} refuses the request for {repo} (HTTP {status}{': ' + said if said else ''}).")


def _response(error: BaseException) -> tuple[int, Mapping[str, str]]:
    """Status and headers of the answer that an exception carries, 0 for none."""
    response: Any = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    if isinstance(status, int):
        return status, response.headers
    if isinstance(code := getattr(error, "code", None), int) and hasattr(error, "headers"):
        return code, error.headers or {}  # urllib
    return 0, {}


def _is_transport(error: BaseException) -> bool:
    import socket
    import ssl
    from http.client import HTTPException
    from urllib.error import URLError

    network = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError, URLError, HTTPException)
    if isinstance(error, network) or getattr(error, "errno", None) in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return True
    names = {(kind.__module__.partition(".")[0].rstrip("2"), kind.__name__) for kind in type(error).__mro__}
    return ("httpx", "TransportError") in names or ("httpx", "StreamError") in names


def _reason(error: BaseException, asked: Asked) -> str:
    """The innermost reason, as `Connection refused`."""
    inner: BaseException = error
    while True:
        reason = getattr(inner, "reason", None)
        following = reason if isinstance(reason, BaseException) else inner.__cause__ or inner.__context__
        if following is None:
            break
        inner = following
    if "timeout" in type(error).__name__.lower() or isinstance(inner, TimeoutError):
        return "no answer in time"
    text = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return _clean(str(text), asked)


def _clean(text: str, asked: Asked) -> str:
    line = " ".join(text.split())
    if asked.token:
        line = line.replace(asked.token, "…")
    return line[:_DETAIL_CHARACTERS].rstrip(". ")


def _cap(text: str) -> str:
    return text[:1].upper() + text[1:]
