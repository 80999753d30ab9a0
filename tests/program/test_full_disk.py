"""The journal on a disk that is full, and free again."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Place
from simple_gpu_scheduler.events import JobEnded
from simple_gpu_scheduler.events.publisher import SinkTroubleError
from simple_gpu_scheduler.joblog.sink import JobLog
from simple_gpu_scheduler.journal import append as subject
from simple_gpu_scheduler.journal.append import Appender
from simple_gpu_scheduler.system.files import is_remote
from tests.support.append import LINES, append_all, whole_lines


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_TRY_AGAIN", 0.0)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    directory = tmp_path / "small"
    directory.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", directory], check=False).returncode:
        pytest.skip("mounting needs root; the limit on file sizes stands for it")
    yield directory
    subprocess.run(["umount", "-l", directory], check=True)


@pytest.mark.usefixtures("_at_once")
def test_a_disk_that_is_full_and_then_free_again_gets_all(small: Path) -> None:
    fd = os.open(small / "j", os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)  # stays open, as above
    with (small / "filler").open("wb", buffering=0) as filler:
        filler.write(b"x" * 56 * 1024)
        appender = Appender(fd, "it")
        (said,) = append_all(appender, LINES[:500])
        assert "No space left on device" in said
        filler.truncate(52 * 1024)  # a page more, which is not enough
        append_all(appender, LINES[500:501])
        assert len(whole_lines(small / "j")) < 500
        filler.truncate(0)
        appender.append(LINES[501])
        appender.close()
        assert whole_lines(small / "j") == LINES[:502]


LIMITED = """
import os, resource, sys
from simple_gpu_scheduler.events.publisher import SinkTroubleError
from simple_gpu_scheduler.journal import append as appender
appender._TRY_AGAIN = 0.0
soft = lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
it = appender.Appender(os.open(sys.argv[1], os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "it")
for number, line in enumerate(sys.stdin.buffer):
    soft(resource.RLIM_INFINITY if number == 590 else 3000 + number * 10)
    try:
        it.append(line)
    except SinkTroubleError as trouble:
        print(trouble)
it.close()
"""


def test_a_file_that_may_not_grow_and_then_may_gets_all(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", LIMITED, tmp_path / "j"]
    done = subprocess.run(argv, input=b"".join(LINES[:591]), capture_output=True, check=True, timeout=120)
    assert done.stdout.startswith(b"cannot write it: File too large; jobs continue, and writing is retried\n")
    assert whole_lines(tmp_path / "j") == LINES[:591]


def end_of(number: int) -> JobEnded:
    job = Job(number, b"true " + b"x" * 3000, Place(number))
    return JobEnded(Attempt(job, 1, ("0",), (0,)), SUCCESS, 1000.0, 1.0, True)


def test_a_job_log_on_a_disk_that_was_full_misses_no_row(small: Path) -> None:
    sink = JobLog(str(small / "log"))
    with (small / "filler").open("wb", buffering=0) as filler:
        filler.write(b"x" * 60 * 1024)
        said = []
        for number in range(1, 6):
            try:
                sink.take(end_of(number))
            except SinkTroubleError as trouble:
                said.append((str(trouble), trouble.is_failure))
        why = f"cannot write the job log {small / 'log'}: No space left on device; jobs continue, and it is tried again"
        assert said == [(why, False)]
        filler.truncate(0)
        sink.take(end_of(6))
        sink.close()
    rows = (small / "log").read_bytes().splitlines()[1:]
    numbers = [int(row.split(b"\t")[0]) for row in rows]
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert {len(row) for row in rows} == {len(rows[0])}


def test_a_file_system_in_memory_is_not_remote(small: Path) -> None:
    assert not is_remote(str(small))
