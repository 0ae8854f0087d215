"""Memories in object stores (`s3://`, `gs://`, `az://`), which Lance reads and writes itself.

Credentials stay in the environment, where Lance looks for them; what is passed on here is where the store is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from funes.errors import CorruptMemoryError, FunesError
from funes.memory.counts import FILE as COUNTS
from funes.memory.counts import PieceCounts
from funes.memory.lance import is_lance_fault, lance_module
from funes.memory.remote.faults import (
    RemoteBusyError,
    RemoteDeniedError,
    RemoteMissingError,
    RemoteUnreachableError,
)
from funes.memory.uri import MemoryPlace

NOWHERE = Path(os.devnull, "object-store")
"""The folder of a memory that is not in one: it cannot exist."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS to the file of a service account",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_NO_CREDENTIALS = (
    "failed to get aws credentials",
    "credentialsnotloaded",
    "performing token request",
    "no storage account configured",
)
_NO_BUCKET = ("nosuchbucket", "bucket does not exist", "containernotfound", "container does not exist")
_DENIED = (
    "accessdenied",
    "forbidden",
    "unauthorized",
    "invalidaccesskeyid",
    "signaturedoesnotmatch",
    "authenticationfailed",
)
_OVERTAKEN = (
    "already exists",
    "/0.manifest was not found",
    "incompatible transaction",
    "commit conflict",
    "concurrent writers",
)
_BUSY = (
    "slowdown",
    "service unavailable",
    "serviceunavailable",
    "internal server error",
    "internalerror",
    "bad gateway",
    "gateway time",
    "too many requests",
)
_NO_ANSWER = ("error sending request", "timed out", "connection", "dns")


def storage_options(url: str, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """What Lance has to be told to find a store.

    A store of one's own is found through the variables that its clients use: `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`
    or `AWS_ENDPOINT` with `AWS_REGION`, `STORAGE_EMULATOR_HOST` for `gs://`, `AZURE_STORAGE_ENDPOINT` for `az://`.
    Plain HTTP is used for an endpoint on this machine only, unless `AWS_ALLOW_HTTP` (or its like) says otherwise.

    Args:
        url: the address of a memory.
        environment: the variables; None for those of this process.
    """
    given = os.environ if environment is None else environment
    scheme = urlsplit(url).scheme
    options: dict[str, str] = {}
    if scheme == "s3":
        endpoint = _first(given, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
        if region := _first(given, "AWS_REGION", "AWS_DEFAULT_REGION") or (endpoint and "us-east-1"):
            options["aws_region"] = region
        if endpoint:
            options["aws_endpoint"] = endpoint
    elif scheme == "gs":
        endpoint = _first(given, "STORAGE_EMULATOR_HOST")
        if endpoint:
            endpoint = endpoint if "://" in endpoint else f"http://{endpoint}"
            options |= {"google_base_url": endpoint, "google_skip_signature": "true"}
    else:
        endpoint = _first(given, "AZURE_STORAGE_ENDPOINT")
        if endpoint:
            options["azure_storage_endpoint"] = endpoint
    if endpoint.startswith("http://") and urlsplit(endpoint).hostname in _LOOPBACK:
        options["allow_http"] = "true"
    return options


def store_fault(error: BaseException, url: str) -> FunesError:
    """The error for a fault of a store, in one sentence without anything that the store said.

    What a store says may contain the id of a key, or an address with a signature in it.

    Args:
        error: what Lance raised.
        url: the address of the memory.
    """
    said, parts = str(error).lower(), urlsplit(url)
    if any(sign in said for sign in _NO_BUCKET):
        return RemoteMissingError(f"There is no bucket {parts.netloc}; check the address {url}.")
    if any(sign in said for sign in _NO_CREDENTIALS):
        return RemoteDeniedError(f"There are no credentials for {url}; set {_CREDENTIALS.get(parts.scheme, 'them')}.")
    if any(sign in said for sign in _DENIED):
        return RemoteDeniedError(f"The credentials that are set may not use {url}, or are not valid.")
    if "failed to resolve region" in said:
        return RemoteUnreachableError(
            f"Amazon does not say in which region the bucket {parts.netloc} is; check the name and the connection, or "
            "set AWS_REGION, and AWS_ENDPOINT_URL for a store that is not Amazon's."
        )
    if any(sign in said for sign in _BUSY):
        return RemoteBusyError(f"The store of {url} has trouble of its own; run the command again later.")
    if "builder error" in said:
        return RemoteUnreachableError(
            f"The store of {url} is at a plain HTTP address, which is used for this machine only; set "
            "AWS_ALLOW_HTTP=true to use it all the same."
        )
    if any(sign in said for sign in _NO_ANSWER):
        return RemoteUnreachableError(f"The store of {url} cannot be reached; check the connection and its endpoint.")
    return CorruptMemoryError(f"The memory in {url} cannot be read: it is damaged, or was made by a newer version.")


def is_overtaken(error: BaseException) -> bool:
    """Whether Lance refused a change because somebody else committed one at the same time."""
    said = str(error).lower()
    return type(error).__name__ == "CommitConflictError" or any(sign in said for sign in _OVERTAKEN)


class StoreBacking:
    """Tables in an object store.

    Args:
        place: the memory, of the kind `store`.
    """

    def __init__(self, place: MemoryPlace) -> None:
        self.where = place.url
        self.folder = NOWHERE
        self._options = storage_options(place.url)
        self._opened: dict[str, Any] = {}

    def has(self, table: str) -> bool:
        """Whether there is a version of a table; it is opened for that.

        Raises:
            RemoteError: when the store cannot be reached, or not without more rights.
        """
        try:
            self._opened[table] = self._dataset(table)
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            if "was not found" in str(error):
                return False
            raise self.fault(error) from error
        return True

    def open(self, table: str) -> Any:
        """Open the newest version of a table as a Lance dataset."""
        return self._opened.pop(table, None) or self._dataset(table)

    def fault(self, error: BaseException) -> FunesError:
        """Make the error for a fault of the storage."""
        return store_fault(error, self.where)

    def counts(self) -> PieceCounts | None:
        """The counts of word pieces that are kept beside the tables, if any."""
        session = self._session()
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, COUNTS)
            try:
                if not session.contains(COUNTS):
                    return None
                session.download_file(COUNTS, str(target))
                return PieceCounts.parse(target.read_bytes())
            except (OSError, RuntimeError):
                return None  # a statistic; without it the rows are counted

    def size(self, table: str, *, indexes: bool) -> int:
        """Bytes of a table's files, as its newest version says: those of its indexes, or all the others."""
        if not self.has(table):
            return 0
        dataset = self.open(table)
        if indexes:
            return sum(int(index.total_size_bytes or 0) for index in dataset.describe_indices())
        files = [file for fragment in dataset.get_fragments() for file in fragment.data_files()]
        return sum(int(file.file_size_bytes or 0) for file in files)

    def versions(self, table: str) -> int:
        """Number of versions that are kept of a table."""
        return sum(name.endswith(".manifest") for name in self._session().list(f"{table}/_versions"))

    def changed(self, table: str) -> datetime | None:
        """When the newest version of a table was written, None when there is none."""
        if not self.has(table):
            return None
        written: datetime = self.open(table).versions()[-1]["timestamp"]
        return written if written.tzinfo else written.astimezone(UTC)

    def _dataset(self, table: str) -> Any:
        return lance_module().dataset(f"{self.where}/{table}", storage_options=self._options)

    def _session(self) -> Any:
        lance_module()
        from lance.file import LanceFileSession

        return LanceFileSession(self.where, storage_options=self._options)


def _first(given: Mapping[str, str], *names: str) -> str:
    return next((value for name in names if (value := given.get(name, "").strip())), "")
