"""What an agent's hook runs: note the event, start the worker, return.

An agent waits for its hooks, so this file costs as little as a Python program can: it is run by path with
`python -I -S`, imports a handful of built-in modules and nothing of funes, and neither parses the payload nor touches
the memory. The event goes into a spool folder; the worker (`funes.commands.follow`) is a process of its own session,
with all its streams on the null device, and takes the spool empty.

One worker at a time: whoever holds the lock file is it. The hook takes the lock and hands it down with the descriptor,
so that twenty hooks in a second start one worker. Where the lock is taken already, its holder is at work, and looks at
the spool once more after it lets go; or it waits for the next event at a pipe, into which the hook puts a byte.

Whatever happens here, the exit code is 0 and nothing is written to the agent's streams.
"""

from __future__ import annotations

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

FOLDER = "hooks"
"""Folder below FUNES_HOME: the spool of events, the worker's lock."""

SUFFIX = ".event"
LOCK = "worker.lock"
PIPE = "worker.pipe"
LOG = "hook.log"
LOG_BYTES = 256 << 10
"""The log is moved aside at this size; with the one before it, twice as much is kept."""

MAX_PAYLOAD = 4 << 20
MAX_WAITING = 500
"""Events that may lie in the spool. With more of them the worker does not work at all, and no further ones help it."""

PATIENCE = 0.05
"""Seconds that an agent is kept waiting for its own payload; what comes later is read in the background."""

BACKGROUND_PATIENCE = 5.0
OWN_ASK = "FUNES_ASK"
ROOT_VARIABLES = (
    "HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "HERMES_HOME",
    "XDG_CONFIG_HOME",
)
"""Where the agents keep their traces. Kept with the event: its worker may have been started by another agent."""

BAKED_VARIABLES = ("FUNES_HOME", "FUNES_MODELS", "XDG_CACHE_HOME")
"""What an agent may filter from the environment of its hooks, and so is written into the installed command."""

HUB_VARIABLES = ("HF_HOME", "HF_HUB_CACHE", "HF_TOKEN_PATH", "HF_ENDPOINT")
STORE_VARIABLES = (
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "STORAGE_EMULATOR_HOST",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_STORAGE_ACCOUNT_NAME",
)
"""The same for an agent that is bound to a memory elsewhere: where credentials are, never credentials themselves."""

LINGER = "FUNES_LINGER"
"""Seconds for which the worker waits for the next event before it ends; written into the command as well."""

PLACE_VARIABLES = HUB_VARIABLES + STORE_VARIABLES

_NO_PATHS = (*STORE_VARIABLES[3:], "HF_ENDPOINT")


def main(arguments: Sequence[str]) -> int:
    """Note one event.

    Args:
        arguments: `HARNESS [--event NAME] [--memory NAME] [--env NAME=VALUE]...`, or `--work [DESCRIPTOR]` to be the
            worker.

    Returns:
        0, whatever happened.
    """
    try:
        if arguments[:1] == ["--work"]:
            _work(arguments[1:])
        if not os.environ.get(OWN_ASK):
            _note(arguments)
    except Exception:
        # A broken memory must not cost the agent a turn, and there is nobody here to tell.
        return 0
    return 0


def hook_command(harness: str, *, event: str = "", memory: str = "") -> list[str]:
    """Make the command for an agent's hook.

    The command exits with 0 and prints nothing even when the interpreter or this file is gone. This file is run by
    path, which is quick; when a new Python moved it, the module is looked up.

    Args:
        harness: the agent: `claude`, `codex`, `pi`, `hermes`.
        event: name of the event, for agents whose payload does not say it.
        memory: the memory that the agent is bound to, empty for the local one.

    Returns:
        The program and its arguments; `shlex.join` makes the string for a shell, or for a program that splits like one.
    """
    import shlex

    python = os.path.abspath(sys.executable)
    options = [harness]
    options += ["--event", event] if event else []
    options += ["--memory", memory] if memory else []
    variables = baked_variables(memory)
    if seconds := os.environ.get(LINGER):
        variables[LINGER] = seconds
    for name, value in variables.items():
        options += ["--env", f"{name}={value}"]
    by_path = shlex.join([python, "-I", "-S", os.path.abspath(__file__), *options])
    by_name = shlex.join([python, "-E", "-P", "-m", "funes.hook", *options])
    return ["/bin/sh", "-c", f"{{ {by_path} || {by_name}; }} >/dev/null 2>&1 || :"]


def baked_variables(memory: str) -> dict[str, str]:
    """Variables to write into an agent's configuration, with their values; paths are made absolute.

    Args:
        memory: the memory that the agent is bound to, empty for the local one.
    """
    names: tuple[str, ...] = BAKED_VARIABLES
    if memory and not os.path.isabs(memory):
        names += STORE_VARIABLES if "://" in memory else HUB_VARIABLES
    found = {}
    for name in names:
        if value := os.environ.get(name):
            found[name] = value if name in _NO_PATHS else os.path.abspath(os.path.expanduser(value))
    return found


def home_folder() -> str:
    """Absolute path of FUNES_HOME, as `funes.paths.funes_home` finds it.

    Raises:
        OSError: when this user has no home folder.
    """
    if not os.environ.get("HOME"):
        os.environ.pop("HOME", None)  # an empty one would mean the root folder; without it the user database is asked
    home = os.path.expanduser(os.environ.get("FUNES_HOME") or os.path.join("~", ".funes"))
    if home.startswith("~"):
        raise OSError("there is no home folder")
    return os.path.abspath(home)


def try_lock(descriptor: int) -> bool:
    """Take the worker's lock on an open file without waiting; False when another process has it."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True  # a platform or a file system without locks: work at the risk of a second worker
    return True


def unlock(descriptor: int) -> None:
    """Give the worker's lock back."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_UN)
    except (ImportError, OSError):
        pass  # there was no lock to take


def waiting_events(folder: str) -> list[str]:
    """Names of the events in the spool, oldest first."""
    return sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))


def write_log(home: str, line: str, name: str = LOG) -> None:
    """Append a line to a log, moving it aside when it is long. The hooks' own is for the holder of the worker's lock.

    Raises:
        OSError: when it cannot be written.
    """
    folder = os.path.join(home, "logs")
    path = os.path.join(folder, name)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    try:
        if os.stat(path).st_size >= LOG_BYTES:
            os.replace(path, path + ".1")
    except FileNotFoundError:
        pass
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(line + "\n")


def _note(arguments: Sequence[str]) -> None:
    """Put the event into the spool and see to it that there is a worker."""
    _fill_streams()
    payload, complete = _read(PATIENCE)
    if not complete:
        # The agent has not finished writing, or never will: it gets its answer now.
        if hasattr(os, "fork") and os.fork():
            return
        _leave_agent(keep=(0,))
        payload += _read(BACKGROUND_PATIENCE, len(payload))[0]
    options = _options(arguments)
    os.environ.update(options["env"])
    home = os.environ["FUNES_HOME"] = home_folder()
    os.environ.setdefault("HOME", os.path.expanduser("~"))
    folder = os.path.join(home, FOLDER)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if len(waiting_events(folder)) < MAX_WAITING:
        _write_event(folder, options, payload)
    lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    if try_lock(lock):
        _start_worker(lock)
    else:
        _call_worker(folder)


def _fill_streams() -> None:
    """Put the null device where the agent left a standard stream closed, so that no file of ours gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _read(patience: float, already: int = 0) -> tuple[bytes, bool]:
    """Read stdin to its end, but not longer than `patience` seconds, and keep the first `MAX_PAYLOAD` bytes.

    Returns:
        What was read, and whether it ended.
    """
    if os.isatty(0):
        return b"", True  # somebody tries the command by hand
    deadline = time.monotonic() + patience
    parts: list[bytes] = []
    size = already
    while (left := deadline - time.monotonic()) > 0:
        if os.name == "posix" and not select.select([0], [], [], left)[0]:
            break
        part = os.read(0, 1 << 16)
        if not part:
            return b"".join(parts), True
        if size < MAX_PAYLOAD:
            parts.append(part)
            size += len(part)
    return b"".join(parts), False


def _options(arguments: Sequence[str]) -> dict[str, dict[str, str]]:
    """Parse the arguments; what is not understood, an option of another version say, is left out."""
    plain: dict[str, str] = {"harness": "", "event": "", "memory": ""}
    variables: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        if argument == "--env":
            name, _, value = next(rest, "").partition("=")
            if name in BAKED_VARIABLES or name in PLACE_VARIABLES or name == LINGER:
                variables[name] = value
        elif argument in ("--event", "--memory"):
            plain[argument[2:]] = next(rest, "")
        elif not argument.startswith("-") and not plain["harness"]:
            plain["harness"] = argument
    return {"plain": plain, "env": variables}


def _write_event(folder: str, options: dict[str, dict[str, str]], payload: bytes) -> None:
    """Write one event: lines of `name value`, an empty line, and the payload as it came."""
    now = time.time_ns()
    head = {"time": f"{now / 1e9:.3f}", **options["plain"]}
    names = ROOT_VARIABLES + (PLACE_VARIABLES if options["plain"]["memory"] else ())
    head |= {name: os.environ[name] for name in names if os.environ.get(name)}
    lines = [f"{name} {value}" for name, value in head.items() if "\n" not in value]
    name = f"{now:020}-{os.getpid()}"
    unfinished = os.path.join(folder, f".{name}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write("\n".join(lines).encode("utf-8", "surrogateescape") + b"\n\n" + payload)
        os.rename(unfinished, os.path.join(folder, name + SUFFIX))
    except OSError:
        # A full disk. The worker is started all the same: events from before may wait for it.
        if os.path.exists(unfinished):
            os.unlink(unfinished)


def _call_worker(folder: str) -> None:
    """Wake the worker where it waits for the next event; nobody has the pipe open while it is at work."""
    try:
        pipe = os.open(os.path.join(folder, PIPE), os.O_WRONLY | os.O_NONBLOCK)
        os.write(pipe, b".")
        os.close(pipe)
    except (OSError, AttributeError):
        return  # it looks at the spool by itself; not every platform has such pipes


def worker_command(*arguments: str) -> list[str]:
    """The command that is the worker.

    Args:
        arguments: the descriptor of the lock, where it is handed down.
    """
    return [sys.executable, "-E", "-P", os.path.abspath(__file__), "--work", *arguments]


def _start_worker(lock: int) -> None:
    """Start the worker and hand the lock down to it."""
    command = worker_command(str(lock))
    if not hasattr(os, "fork"):
        import subprocess

        flags = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        nowhere = subprocess.DEVNULL
        subprocess.Popen(
            command[:-1],
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
            cwd=os.environ["FUNES_HOME"],
            creationflags=flags,
        )
        return
    if os.fork():
        return
    try:
        _leave_agent(keep=(lock,))
        os.set_inheritable(lock, True)
        os.chdir(os.environ["FUNES_HOME"])  # the agent's folder may have to be unmounted or removed
        os.execv(command[0], command)
    finally:
        os._exit(0)


def _leave_agent(keep: tuple[int, ...]) -> None:
    """Let go of the agent's terminal, process group and streams, and of whatever else it let its hooks inherit."""
    os.setsid()
    try:
        # An agent may wait for the end of a pipe for as long as anybody holds it.
        inherited = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        inherited = list(range(3, 256))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in inherited:
        if number in keep:
            continue
        if number < 3:
            os.dup2(nowhere, number)
        elif number != nowhere:
            os.closerange(number, number + 1)  # no error for the descriptor of the listing, which is closed already


def _work(arguments: Sequence[str]) -> NoReturn:
    """Be the worker; when funes itself cannot be imported, log that."""
    import gc
    import importlib

    lock = int(arguments[0]) if arguments else None
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # Starting BLAS's own threads, which funes does not use, takes longer than reading a turn.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Going through what the imports made, again and again, for garbage that is not there costs a tenth of a second.
    gc.set_threshold(50_000, 20, 100)
    try:
        # The package that this file belongs to is the one to run, whatever else is installed. What lies beside it is
        # not to stand in for modules of the standard library, though.
        sys.path.insert(0, beside)
        importlib.import_module("funes")
        sys.path.remove(beside)
        sys.path.append(beside)
        from funes.commands.follow import follow

        follow(lock)
    except Exception as error:
        import json

        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        reason = f"the worker failed: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        write_log(home_folder(), json.dumps({"time": now, "harness": "", "event": "", "error": reason}))
    os._exit(0)  # everything is closed, and taking the libraries down would cost a tenth of a second


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
