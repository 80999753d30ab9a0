"""A disk that is full: under the journal, under the jobs' logs, under the leases; and one that gets free in mid-run."""

import itertools
import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .ground import ON_CPU, ON_GPU, Counts, Ground, until


class NoDiskError(Exception):
    """None can be mounted here: that takes root, and a machine that allows it."""


class SmallDisk:
    """A tmpfs, and what fills it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self, spare: int = 0) -> None:
        """Leave so many bytes, or a page more."""
        with self._filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        with self._filler.open("r+b") as file:
            file.truncate(max(0, self._filler.stat().st_size - spare))

    def take_names(self) -> None:
        """No file more can be made."""
        with suppress(OSError):
            for at in itertools.count():
                (self.path / f"name-{at}").touch()

    def free(self) -> None:
        self._filler.unlink()


@contextmanager
def small_disk(path: Path, options: str = "size=512k") -> Iterator[SmallDisk]:
    """A disk of its own."""
    path.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], capture_output=True, check=False)
    if mounted.returncode:
        raise NoDiskError(mounted.stderr.decode().strip())
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", path], check=False)


def disk_full(directory: Path, chance: random.Random, jobs: int = 100) -> Counts:
    """All of these, one after another."""
    counts: Counts = Counter()
    for name, fault in _FAULTS.items():
        ground = Ground(directory / name.replace(" ", "-"), chance)
        try:
            counts[f"jobs, {name}"] = fault(ground, jobs)
        finally:
            ground.close()
    return counts


def _journal_full(ground: Ground, jobs: int) -> int:
    """From the middle to the end."""
    with small_disk(ground.state) as disk:
        disk.fill(spare=4096)
        process = ground.start(*ON_CPU, stdin=_input(ground, jobs))
        ground.finish(process, 1)
    _check_said(ground, "journal", "No space left on device")
    return ground.check(range(1, jobs + 1))["jobs"]


def _journal_full_at_once(ground: Ground, jobs: int) -> int:
    """Not even its directory can be made."""
    with small_disk(ground.state, "size=512k,nr_inodes=1"):
        ground.finish(ground.start(*ON_CPU, stdin=_input(ground, jobs)), 1)
    _check_said(ground, "no journal can be kept", "No space left on device")
    return ground.check(range(1, jobs + 1))["jobs"]


def _journal_full_for_a_while(ground: Ground, jobs: int) -> int:
    """What was not written is written when there is room."""
    with small_disk(ground.state) as disk:
        disk.fill(spare=4096)
        commands = _commands(ground, jobs, most=0.1)
        process = ground.start(*ON_CPU, stdin=ground.write("jobs", "".join(commands)))
        until(lambda: "No space left" in ground.said and ground.ended() > jobs / 2, "the disk is full in mid-run")
        disk.free()
        ground.finish(process, 1)
        _check_said(ground, "journal", "No space left on device")
        counts = ground.check(range(1, jobs + 1))
        _check_told(ground, commands)
        ground.finish(ground.start("--resume"))
        assert not ground.check(range(1, jobs + 1))["started again"]
    return counts["jobs"]


def _journal_full_and_killed(ground: Ground, jobs: int) -> int:
    """The keeper writes what it has to say when there is room; what the journal lost may be run again."""
    with small_disk(ground.state) as disk:
        disk.fill(spare=8192)
        process = ground.start(*ON_CPU, stdin=_input(ground, jobs, most=0.1))
        until(lambda: "No space left" in ground.said, "the disk is full")
        process.kill()
        process.wait()
        disk.free()
        process = ground.start("--resume")
        ground.finish(process)
        return ground.check(range(1, jobs + 1), may_repeat=True)["jobs"]


def _pipe_on_a_full_disk(ground: Ground, jobs: int) -> int:
    """What comes from a pipe cannot be saved, and is run anyway."""
    lines = "".join(_commands(ground, jobs)) + "# as much again\n" * 1000
    reader, writer = os.pipe()
    with small_disk(ground.state) as disk:
        disk.fill(spare=8192)
        with os.fdopen(reader, "rb"):
            process = ground.start(*ON_CPU, stdin=Path(f"/proc/self/fd/{reader}"))
        with os.fdopen(writer, "w") as file:
            file.write(lines)
        ground.finish(process, 1)
    _check_said(ground, "No space left on device")
    return ground.check(range(1, jobs + 1))["jobs"]


def _logs_full(ground: Ground, jobs: int) -> int:
    """No file can be made for what the jobs print: they print where the program does."""
    with small_disk(ground.directory / "logs", "size=512k,nr_inodes=20") as disk:
        disk.take_names()
        process = ground.start(*ON_CPU, "--logs", str(disk.path), stdin=_input(ground, jobs))
        ground.finish(process, 1)
    _check_said(ground, "its log", "No space left on device")
    return ground.check(range(1, jobs + 1))["jobs"]


def _logs_without_room(ground: Ground, jobs: int) -> int:
    """No header can be written to a log: the jobs print where the program does."""
    with small_disk(ground.directory / "logs") as disk:
        disk.fill()
        lines = [f"echo lost; {command}" for command in _commands(ground, jobs)]
        given = ground.write("jobs", "".join(lines))
        ground.finish(ground.start(*ON_CPU, "--logs", str(disk.path), stdin=given), 1)
    _check_said(ground, "its log", "No space left on device")
    return ground.check(range(1, jobs + 1))["jobs"]


def _leases_full(ground: Ground, jobs: int) -> int:
    """Without a lease no GPU can be promised to be ours alone: that is said before anything is started."""
    with small_disk(ground.directory / "leases", "size=512k,nr_inodes=1"):
        process = ground.start(*ON_GPU, stdin=_input(ground, jobs, options=""))
        ground.finish(process, 2)
    _check_said(ground, "No space left on device")
    assert not list(ground.ledger.iterdir()), "something was started"
    return 0


def _leases_without_room(ground: Ground, jobs: int) -> int:
    """A lease is a lock on a file that is there; that its holder cannot be written into it stops nothing."""
    with small_disk(ground.directory / "leases") as disk:
        disk.path.chmod(0o1777)
        given = _input(ground, jobs, most=0.1, options="")
        process = ground.start(*ON_GPU, stdin=given)
        until(ground.ended, "some jobs have ended")
        disk.fill()
        ground.finish(process)
    return ground.check(range(1, jobs + 1))["jobs"]


_FAULTS = {
    "journal full": _journal_full,
    "journal full at once": _journal_full_at_once,
    "journal full for a while": _journal_full_for_a_while,
    "journal full and killed": _journal_full_and_killed,
    "pipe on a full disk": _pipe_on_a_full_disk,
    "logs full": _logs_full,
    "logs without room": _logs_without_room,
    "leases full": _leases_full,
    "leases without room": _leases_without_room,
}


def _commands(ground: Ground, jobs: int, most: float = 0.02, options: str = "gpus=0") -> list[str]:
    return [ground.command(number, 0, most, options) for number in range(1, jobs + 1)]


def _input(ground: Ground, jobs: int, most: float = 0.02, options: str = "gpus=0") -> Path:
    return ground.write("jobs", "".join(_commands(ground, jobs, most, options)))


def _check_said(ground: Ground, *parts: str) -> None:
    for part in parts:
        assert part in ground.said, f"{part!r} was not said: {ground.said[-2000:]}"


def _check_told(ground: Ground, commands: list[str]) -> None:
    found = ground.history()
    missing = [each for each in commands if found[each.partition(" #:")[0].strip()]["state"] != "succeeded"]
    assert not missing, f"the journal lacks {len(missing)}: {missing[:3]}"
