"""A journal that is cut at any byte, and a clock that is set back."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from mmap import mmap
from pathlib import Path
from typing import Any

from .ground import NOTHING_THERE, ON_CPU, ROOT, Counts, Ground, until

_CODES = (0, 0, 1, 0, 3)
_HOUR = 3600

# Tells every time as that of the clock and as many seconds more as a file holds; the clock itself stays.
_CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long *offset;
__attribute__((constructor)) static void begin(void) {
    int fd = open(getenv("CLOCK"), O_RDONLY | O_CLOEXEC);
    void *found = fd < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
    if (found != MAP_FAILED) offset = found;
    if (fd >= 0) close(fd);
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (offset && clock == CLOCK_REALTIME) now->tv_sec += *offset;
    return result;
}
time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *to, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec;
    to->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


class NoCompilerError(Exception):
    """The clock of a program alone cannot be set without a C compiler."""


def journal_cut(directory: Path, chance: random.Random, jobs: int = 20, step: int = 1, real: int = 20) -> Counts:
    """The journal of a run that was killed, cut at every byte (or at every so many): what it says holds."""
    ground = Ground(directory, chance)
    try:
        codes = {number: _CODES[number % 5] for number in range(1, jobs + 1)}
        commands = {number: ground.command(number, code, 0.1, "gpus=0") for number, code in codes.items()}
        data, path = _journal_of_killed_run(ground, commands)
        counts: Counts = Counter(records=data.count(b"\n"), bytes=len(data))
        first = chance.randrange(step)
        for size in (*range(first, len(data), step), len(data)):
            _check_cut(directory / "cut.jsonl", data[:size])
            counts["cuts, looked at"] += 1
        for size in sorted(chance.randrange(len(data)) for _ in range(real)):
            _resume_cut(ground, path, data[:size], commands)
            counts["cuts, resumed"] += 1
    finally:
        ground.close()
    return counts


def _journal_of_killed_run(ground: Ground, commands: dict[int, str]) -> tuple[bytes, Path]:
    """Resumed once, so that there is all in it that a scheduler and a keeper write."""
    given = ground.write("jobs", "".join(commands.values()))
    for args, least in ((ON_CPU, 3), (("--resume",), len(commands) // 2)):
        process = ground.start(*args, "--cpu-slots", "3", **({"stdin": given} if args == ON_CPU else {}))
        until(lambda: ground.ended() >= least, "some jobs have ended")  # noqa: B023
        process.kill()
        process.wait()
    (path,) = ground.runs.glob("*.jsonl")
    until(lambda: all(ground.has_ended(int(each.name)) for each in ground.ledger.iterdir()), "what ran has ended")
    until(lambda: _is_still(path), "its keeper has left")
    return path.read_bytes(), path


def _is_still(path: Path) -> bool:
    from simple_gpu_scheduler.journal import files  # noqa: PLC0415 - of the checkout, or of the tests

    with files.opened(str(path)) as fd:
        return not files.is_kept(fd)


def _told(data: bytes) -> tuple[bool, set[int], set[int]]:
    """Whether it says which run it is; the jobs that it tells of, and those that have ended. Only whole lines count."""
    records: list[dict[str, Any]] = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
    read = {each["job"] for each in records if each["event"] == "job read"}
    ended = {each["job"] for each in records if each["event"] == "job exited" or each.get("final")}
    return bool(records), read, ended


def _check_cut(path: Path, data: bytes) -> None:
    """In this process, with what the program itself uses."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from simple_gpu_scheduler.base.errors import UserError  # noqa: PLC0415
    from simple_gpu_scheduler.resume import find  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.resume.unfinished_jobs import what_is_left  # noqa: PLC0415

    begins, read, ended = _told(data)
    path.unlink(missing_ok=True)  # a process that refuses one keeps its lock until it exits
    path.write_bytes(data)
    try:
        resumed = find.take(str(path))
    except UserError:
        assert not begins, f"a journal of {len(data)} bytes is refused"
        return
    os.close(resumed.fd)
    assert begins, f"a journal of {len(data)} bytes is taken for one"
    left = what_is_left(resumed.state, {}, failed_too=False)
    waiting = {each[0].number for each in left.waiting}
    assert waiting == read - ended, f"{len(data)} bytes: {waiting} would run, not {read - ended}"
    over = {each[0].number for each in left.ended} | {each.attempt.job.number for each in left.survivors}
    assert over == ended, f"{len(data)} bytes: ended are {over}, not {ended}"


def _resume_cut(ground: Ground, path: Path, data: bytes, commands: dict[int, str]) -> None:
    """The program itself: it runs all that the cut journal does not say to have ended, and nothing else."""
    begins, _, ended = _told(data)
    for each in ground.runs.iterdir():
        each.unlink()
    shutil.rmtree(ground.ledger)
    ground.ledger.mkdir()
    path.write_bytes(data)
    process = ground.start("--resume")
    if not begins:
        ground.finish(process, 2)
        assert NOTHING_THERE in ground.said
        return
    ground.finish(process, 1)
    ground.check(set(commands) - ended)


def clock_set_back(directory: Path, chance: random.Random, jobs: int = 60) -> Counts:
    """By an hour in mid-run, by another while nothing runs; then a journal in which each time is before the last."""
    ground = Ground(directory, chance)
    clock = _Clock(ground)
    commands = {number: ground.command(number, 0, 0.05, "gpus=0") for number in range(1, jobs + 1)}
    try:
        process = ground.start(*ON_CPU, stdin=ground.write("jobs", "".join(commands.values())))
        until(lambda: ground.ended() > jobs / 4, "some jobs have ended")
        clock.set(-_HOUR)
        _check_shown(ground)
        until(lambda: ground.ended() > jobs / 2, "more jobs have ended")
        process.kill()
        process.wait()
        clock.set(-2 * _HOUR)
        process = ground.start("--resume")
        _check_shown(ground)
        ground.finish(process)
        counts = ground.check(commands)
        _check_history(ground, commands)
        counts["times that go backwards"] = _reverse_times(ground)
        _check_shown(ground)
        ground.finish(ground.start("--resume"))
        assert not ground.check(commands)["started again"]
        _check_history(ground, commands)
        _check_names(ground)
    finally:
        ground.close()
    return counts


class _Clock:
    """That of the programs that are started here."""

    def __init__(self, ground: Ground) -> None:
        compiler = shutil.which("cc")
        if not compiler:
            raise NoCompilerError("it needs a C compiler (cc)")
        library = ground.directory / "clock.so"
        source = ground.write("clock.c", _CLOCK)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        path = ground.directory / "clock"
        path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._offset = mmap(file.fileno(), 8)
        ground.environment |= {"LD_PRELOAD": str(library), "CLOCK": str(path)}

    def set(self, seconds: int) -> None:
        self._offset[:] = seconds.to_bytes(8, sys.byteorder, signed=True)


def _check_shown(ground: Ground) -> None:
    """What is shown of it makes sense."""
    for args in (("status", "--json"), ("status",), ("history",), ("history", "--json")):
        asked = ground.ask(*args)
        assert asked.returncode == 0, f"{args}: {asked.stderr}"
        assert "Traceback" not in asked.stderr, asked.stderr
        if args[-1] == "--json":
            negative = [each for each in _durations(json.loads(asked.stdout)) if each[1] < 0]
            assert not negative, f"{args}: {negative}"


def _check_history(ground: Ground, commands: dict[int, str]) -> None:
    found = ground.history()
    told = [found[command.partition(" #:")[0].strip()] for command in commands.values()]
    assert all(each["state"] == "succeeded" for each in told), told
    assert not [each for each in _durations(told) if each[1] < 0]


def _durations(found: Any) -> Iterable[tuple[str, float]]:
    """Whatever is called so, however deep."""
    if isinstance(found, list):
        for each in found:
            yield from _durations(each)
    elif isinstance(found, dict):
        for name, value in found.items():
            if isinstance(value, (int, float)) and name in ("seconds", "runtime", "elapsed", "eta", "estimate"):
                yield name, value
            yield from _durations(value)


def _reverse_times(ground: Ground) -> int:
    (path,) = ground.runs.glob("*.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    times = (2_000_000_000.0 - 10.5 * at for at in range(len(lines)))
    path.write_text("".join(re.sub(r'"at":[\d.]+', f'"at":{next(times):.3f}', line, count=1) for line in lines))
    return len(lines)


def _check_names(ground: Ground) -> None:
    """Each run has a name of its own, and the journal of a run that began under an earlier clock is found."""
    before = {path.stem for path in ground.runs.glob("*.jsonl")}
    ground.finish(ground.start(*ON_CPU, stdin=ground.write("one", "true #: gpus=0\n")))
    (new,) = {path.stem for path in ground.runs.glob("*.jsonl")} - before
    listed = [each["run"] for each in json.loads(ground.ask("history", "--json").stdout)]
    assert listed == sorted({new, *before}, reverse=True), listed
