"""Where a fault is brought about: a directory with a run's state, its jobs, and the ledger that they keep themselves.

The ledger is independent of the journal: each job appends to a file of its own, which it has locked, so that it would
notice itself running twice. It knows nothing of the faults.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SCHEDULER = (sys.executable, "-m", "simple_gpu_scheduler")
ON_CPU = ("--gpus", "0", "--ignore-occupancy", "--cpu-slots", "8")
ON_GPU = ("--gpus", "0", "--ignore-occupancy", "--jobs-per-gpu", "8", "--quarantine", "0")
AGAIN = "ended, and run again"
NOTHING_THERE = "no run to resume in this directory"

# NUMBER CODE SECONDS
_JOB = """#!/bin/sh
exec 9>>"$LEDGER/$1"
flock -n 9 || echo "overlap $SGS_ATTEMPT $$" >&9
echo "start $SGS_ATTEMPT $$" >&9
sleep "$3"
echo "end $SGS_ATTEMPT" >&9
exit "$2"
"""

Popen = subprocess.Popen[bytes]
Counts = Counter[str]


def until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not come true: {what}"
        time.sleep(0.005)


class Ground:
    """A directory of its own, and the program in it."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.directory = directory
        self.chance = chance
        self.ledger = directory / "ledger"
        self.state = directory / "state"
        self.runs = self.state / "simple_gpu_scheduler" / "runs"
        self.ledger.mkdir(parents=True)
        self._job = directory / "job"
        self._job.write_text(_JOB)
        self._job.chmod(0o755)
        self._said = directory / "said"
        self._started: list[Popen] = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "SGS_"))}
        self.environment = kept | {
            "LEDGER": str(self.ledger),
            "XDG_STATE_HOME": str(self.state),
            "SGS_LEASE_DIR": str(directory / "leases"),
            "PYTHONPATH": str(ROOT),
        }

    def command(self, number: int, code: int = 0, most: float = 0.02, options: str = "") -> str:
        """The line of a job that takes a random time."""
        return f"{self._job} {number} {code} {self.chance.uniform(0, most):.4f}{options and ' #: '}{options}\n"

    def write(self, name: str, text: str) -> Path:
        """A file beside the others."""
        path = self.directory / name
        path.write_text(text)
        return path

    def start(self, *args: str, stdin: Path = Path(os.devnull), **settings: object) -> Popen:
        """Start the program; what it says is kept."""
        options = {"cwd": self.directory, "env": self.environment, "stdout": subprocess.DEVNULL} | settings
        with self._said.open("ab") as said, stdin.open("rb") as given:
            process: Popen = subprocess.Popen([*SCHEDULER, *args], stdin=given, stderr=said, **options)  # type: ignore[call-overload]
        self._started.append(process)
        return process

    def start_on(self, terminal: int, *argv: str) -> Popen:
        """Start something with all its streams on a terminal."""
        settings = {"cwd": self.directory, "env": self.environment}
        process: Popen = subprocess.Popen(argv, stdin=terminal, stdout=terminal, stderr=terminal, **settings)  # type: ignore[call-overload]
        self._started.append(process)
        return process

    def ask(self, *args: str, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
        """One of the commands that look at a run from outside."""
        return subprocess.run(
            [*SCHEDULER, *args],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    @property
    def said(self) -> str:
        """All that the program has said here so far."""
        return self._said.read_text(errors="replace") if self._said.exists() else ""

    def finish(self, process: Popen, code: int = 0, seconds: float = 120) -> None:
        """Wait for its end, which must be this one."""
        found = process.wait(timeout=seconds)
        assert found == code, f"exit code {found}, not {code}: {self.said[-2000:]}"

    def has_begun(self, pid: int) -> bool:
        """Whether a scheduler has said in a journal that it is at work."""
        return any(b'"pid":%d,' % pid in path.read_bytes() for path in self.runs.glob("*.jsonl"))

    def history(self) -> dict[str, dict[str, object]]:
        """By command, what the program tells of the newest run's jobs."""
        # One that was killed before its first word is a run of nothing.
        newest = max(path.stem for path in self.runs.glob("*.jsonl") if path.stat().st_size)
        asked = self.ask("history", newest, "--json")
        assert asked.returncode == 0, asked.stderr
        return {each["command"]: each for each in json.loads(asked.stdout)}

    def entries(self, number: int) -> list[list[str]]:
        """What a job has written of itself."""
        path = self.ledger / str(number)
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def ended(self) -> int:
        """How many jobs have come to an end."""
        return sum(b"end " in path.read_bytes() for path in self.ledger.iterdir())

    def has_ended(self, number: int) -> bool:
        """Whether a job has."""
        return any(entry[0] == "end" for entry in self.entries(number))

    def check(self, expected: Collection[int], possible: Collection[int] = (), *, may_repeat: bool = False) -> Counts:
        """Every expected job has run to its end, once or again only because it had not ended; others may have not.

        `may_repeat` where the end of a job may be unknown.
        """
        counts: Counts = Counter()
        allowed = {str(number) for number in (*expected, *possible)}
        strange = [path.name for path in self.ledger.iterdir() if path.name not in allowed]
        assert not strange, f"these were never asked for: {strange}"
        for number in expected:
            entries = self.entries(number)
            counts["lost"] += not entries
            self._check_one(number, entries, counts, may_repeat=may_repeat)
        for number in possible:
            self._check_one(number, self.entries(number), counts, may_repeat=may_repeat)
        promised = ("lost", "overlaps", "not ended", *(() if may_repeat else (AGAIN,)))
        wrong = {name: counts[name] for name in promised if counts[name]}
        assert not wrong, f"{wrong}: {self.directory}\n{self.said[-1500:]}"
        assert "Traceback" not in self.said, self.said[-3000:]
        return Counter({name: count for name, count in counts.items() if count})

    def _check_one(self, number: int, entries: list[list[str]], counts: Counts, *, may_repeat: bool) -> None:
        if not entries:
            return
        kinds = [entry[0] for entry in entries]
        found = {
            "overlaps": kinds.count("overlap"),
            AGAIN: kinds[:-1].count("end"),
            "not ended": int(kinds[-1] != "end"),
        }
        if any(count for name, count in found.items() if not (may_repeat and name == AGAIN)):
            print(f"job {number} in {self.directory}: {entries}", file=sys.stderr)
        counts.update(found, **{"jobs": 1, "started again": kinds.count("start") - 1})

    def close(self) -> None:
        """End what is left of what was started here: our processes, and their jobs, by the pids in the ledger."""
        for process in self._started:
            if process.poll() is None:
                for pid in (keeper_of(process.pid), process.pid):
                    if pid:
                        signal_to(pid, signal.SIGCONT)
                process.terminate()
                try:
                    process.wait(timeout=15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        for path in self.ledger.iterdir():
            for entry in self.entries(int(path.name)) if path.name.isdigit() else ():
                if entry[0] == "start" and is_job(int(entry[2]), self._job):
                    signal_to(int(entry[2]), signal.SIGKILL)


def is_job(pid: int, job: Path) -> bool:
    """Whether this pid still is a job of ours."""
    try:
        return str(job).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def signal_to(pid: int, number: int) -> None:
    """Signal a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def keeper_of(pid: int) -> int:
    """The keeper of a scheduler: its child that leads a session and is the same program; 0 when there is none."""
    with suppress(OSError):
        mine = Path(f"/proc/{pid}/cmdline").read_bytes()
        for each in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (each / "children").read_text().split()):
                is_same = Path(f"/proc/{child}/cmdline").read_bytes() == mine
                if is_same and os.getsid(child) == child:
                    return child
    return 0
