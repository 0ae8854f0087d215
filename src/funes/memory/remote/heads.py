"""Asking the Hub for the head of a branch with the standard library."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urljoin, urlsplit

from funes.memory.remote.faults import Asked, RemoteError, remote_fault
from funes.memory.remote.tokens import Token

TIMEOUT = 6.0
"""Seconds without an answer after which the Hub counts as unreachable; `HF_HUB_ETAG_TIMEOUT` overrides."""

TRIES = 3
FIRST_WAIT = 0.5
"""Seconds before another try where the Hub does not say how long to wait."""

LONGEST_WAIT = 5.0
"""Seconds that the Hub may ask to wait; a longer wait is left to the user."""

_COMMIT = re.compile(r"[0-9a-f]{40}")


def ask_head(endpoint: str, repo: str, revision: str, token: Token, asked: Asked) -> str:
    """Ask for the commit that a revision stands at.

    Args:
        endpoint: address of the Hub.
        repo: `<org>/<name>` of a dataset.
        revision: branch or tag.
        token: sent along unless it is empty.
        asked: for the sentence of a fault.

    Raises:
        RemoteError: one of its subclasses says why there is no answer.
    """
    address = f"{endpoint}/api/datasets/{repo}/revision/{quote(revision, safe='')}?expand=sha"
    request = urllib.request.Request(address, headers={"User-Agent": "funes", "Accept": "application/json"})
    if token.value:
        request.add_header("Authorization", f"Bearer {token.value}")
    opener = urllib.request.build_opener(_SameHostOnly)
    for left in reversed(range(TRIES)):
        try:
            with opener.open(request, timeout=_timeout()) as answer:
                commit = json.load(answer).get("sha", "")
        except (HTTPError, URLError, HTTPException, OSError) as error:
            wait = _wait(error)
            if left and wait is not None:
                time.sleep(wait)
                continue
            raise (remote_fault(error, asked) or error) from error
        except (ValueError, AttributeError):
            commit = ""
        if isinstance(commit, str) and _COMMIT.fullmatch(commit):
            return commit
        break
    raise RemoteError(f"{asked.hub[:1].upper()}{asked.hub[1:]} gave an answer about {repo} that is not the Hub's.")


class _SameHostOnly(urllib.request.HTTPRedirectHandler):
    """Follows the redirect of a renamed repository, and does not take the token to another host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        before, after = urlsplit(req.full_url), urlsplit(urljoin(req.full_url, newurl))
        if following is not None and (before.scheme, before.netloc) != (after.scheme, after.netloc):
            following.remove_header("Authorization")
        return following


def _wait(error: BaseException) -> float | None:
    """Seconds to wait before another try, None when there is no sense in one."""
    if isinstance(error, HTTPError):
        if error.code == 429:
            wait = error.headers.get("Retry-After") or str(FIRST_WAIT)
            return float(wait) if wait.replace(".", "", 1).isdigit() and float(wait) <= LONGEST_WAIT else None
        return FIRST_WAIT if error.code in (500, 502, 503, 504) else None
    # A connection that is cut is worth another try; one that is refused, or never answers, is not.
    reason = error.reason if isinstance(error, URLError) else error
    return FIRST_WAIT if isinstance(reason, (ConnectionResetError, BrokenPipeError, HTTPException)) else None


def _timeout() -> float:
    value = os.environ.get("HF_HUB_ETAG_TIMEOUT", "")
    return float(value) if value.isdigit() and int(value) else TIMEOUT
