"""Running commands and saying what they cost, on what machine."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PACKAGES = ("numpy", "pylance", "pyarrow", "tokenizers", "kingfisher-secret-scanner", "onnxruntime")
SAMPLE_SECONDS = 0.3


@dataclass(slots=True)
class Row:
    """One row of the table.

    Attributes:
        name: what was measured.
        figure: the result, with its unit.
        target: what design section 12 asks for.
        met: `yes`, `no`, `by CPU time` (see `verdict`), or empty where this run cannot tell.
        conditions: the command, the corpus, the number of runs.
        data: the numbers behind the figure, for the JSON file.
        cpu: CPU time of the same runs, with its unit; empty where the figure is none of wall time.
    """

    name: str
    figure: str
    target: str
    met: str
    conditions: str
    data: dict[str, Any] = field(default_factory=dict)
    cpu: str = ""


@dataclass(slots=True)
class Cost:
    """What a command cost.

    Attributes:
        wall: seconds from start to end.
        cpu: seconds of CPU time, user and system, of the process and its descendants.
        peak: most memory, bytes. Of a run that was watched, of the process tree at any moment, shared pages counted
            once (PSS, Linux). Of any other, the most resident memory of the biggest process, mapped files included.
        output: stdout.
    """

    wall: float
    cpu: float
    peak: int
    output: str


def funes(*arguments: str) -> list[str]:
    """Make a command line: the command installed beside this interpreter, else the package that it can import."""
    script = Path(sys.executable).parent / "funes"
    return [str(script), *arguments] if script.exists() else [sys.executable, "-m", "funes", *arguments]


def environment(home: Path) -> dict[str, str]:
    """The environment of a command that works on the memory in `home`."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    # A worker that stays for the next turn would be measured, or waited for, where nobody means it.
    alone = {"FUNES_LINGER": "0"}
    return {**os.environ, **alone, "FUNES_HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, paths))}


LAUNCHER = """
import os, sys, time
os.set_inheritable(int(sys.argv[1]), False)
began = time.perf_counter()
process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
wall = time.perf_counter() - began
os.write(int(sys.argv[1]), b"[%r, %r, %d, %d]" % (
    wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status)
))
"""
"""Starts a command and says what it cost. The system counts as a process's peak also what the process that started it
held, which for a benchmark with its libraries is more than most commands need; this one holds next to nothing."""


def run(command: Sequence[str], home: Path, *, stdin: bytes = b"", watch: bool = False, **variables: str) -> Cost:
    """Run a command to its end.

    Args:
        command: program and arguments.
        home: the `FUNES_HOME` it works on.
        stdin: what it reads.
        watch: whether to look at the memory of the process tree while it runs.
        variables: further variables of its environment.

    Raises:
        SystemExit: when the command fails; a figure of a failed command would be a lie.
    """
    told, tell = os.pipe()
    launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(tell)]
    # Into a file, since nobody reads what a long run says before its end.
    with tempfile.TemporaryFile() as said, open(told, "rb") as costs:
        process = subprocess.Popen(
            [*launcher, *command],
            env=environment(home) | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            pass_fds=(tell,),
        )
        os.close(tell)
        watcher = Watcher(process.pid) if watch else None
        output, _ = process.communicate(stdin)
        seen = watcher.stop() if watcher else None
        told_costs = costs.read()
        said.seek(0)
        errors = said.read().decode(errors="replace")
    wall, cpu, most, code = json.loads(told_costs) if told_costs else (0.0, 0.0, 0, process.returncode)
    if code:
        sys.exit(f"{' '.join(command)} ended with {code}: {errors[-500:]}")
    peak = most * (1 if sys.platform == "darwin" else 1024)
    if seen is not None:
        # A process that nobody waited for counts only in what the watcher saw.
        peak, cpu = seen[0] or peak, max(seen[1], cpu)
    return Cost(wall, cpu, peak, output.decode())


class Watcher:
    """Looks at the memory and the CPU time of a process's descendants from a thread, until stopped."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._peak = 0
        self._cpu: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> tuple[int, float]:
        """End, and return the peak in bytes and the CPU time in seconds; zeros where the system does not tell."""
        self._over.set()
        self._thread.join()
        return self._peak, sum(self._cpu.values())

    def _look(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            tree = _tree(self._root)[1:]
            self._peak = max(self._peak, sum(map(_memory, tree)))
            for process in tree:
                if not math.isnan(seconds := cpu_seconds(process)):
                    self._cpu[process] = seconds


def _tree(root: int) -> list[int]:
    """Ids of a process, which comes first, and of its descendants (Linux)."""
    found, left = [], [root]
    while left:
        process = left.pop()
        found.append(process)
        for path in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                left += map(int, path.read_text().split())
            except OSError:
                continue  # the thread has ended
    return found


def _memory(process: int) -> int:
    """A process's memory in bytes, each shared page divided by the number of processes that share it (Linux)."""
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # it has ended
    return 0


def cpu_seconds(process: int) -> float:
    """CPU time that a running process has used, user and system; NaN where the system does not tell (Linux does)."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_peak(process: int) -> int:
    """Most resident memory that a running process has had, mapped files included, in bytes; 0 where unknown (Linux)."""
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def verdict(wall: float, cpu: float, target: float) -> str:
    """Whether a time is within its target.

    On a machine that others keep busy, wall time measures them; CPU time is then the best guess at what a quiet machine
    would need, and the verdict says that it is one.
    """
    if wall <= target:
        return "yes"
    return "by CPU time" if busy() and cpu <= target else "no"


def busy() -> bool:
    """Whether more processes want to run than there are cores, this one not counted."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > cores() + 1


def cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def timed(action: Callable[[], object]) -> float:
    """Wall time of a call, in seconds."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie, interpolated."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile, least and most of some values, and how many there are."""
    return {
        "median": statistics.median(values),
        "p95": percentile(values, 0.95),
        "least": min(values),
        "most": max(values),
        "n": len(values),
    }


def costs_of(works: Sequence[Callable[[], object]]) -> list[tuple[float, float]]:
    """Wall and CPU seconds of calls one after the other; CPU time is that of the whole process."""
    times = []
    for work in works:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return times


@dataclass(slots=True)
class Machine:
    """Where the figures come from."""

    system: str
    processor: str
    cores: int
    memory_gb: float
    python: str
    packages: dict[str, str]
    commit: str
    load: tuple[float, ...]

    def describe(self) -> str:
        """Two lines for people."""
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        load = ", ".join(f"{value:.1f}" for value in self.load)
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gb:.0f} GB, {self.system}; load average {load}\n"
            f"funes {self.commit}; Python {self.python}, {packages}"
        )

    def as_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        return asdict(self)


def machine() -> Machine:
    """Describe this machine, as it is now."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "absent"
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    except (ValueError, OSError):
        memory = float("nan")
    load = os.getloadavg() if hasattr(os, "getloadavg") else ()
    return Machine(
        f"{platform.system()} {platform.machine()}",
        _processor(),
        cores(),
        memory,
        platform.python_version(),
        packages,
        _commit(),
        tuple(load),
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


def _commit() -> str:
    try:
        command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown commit"
