"""Bytes -> logical lines, however they are cut on the way in."""

import os
import pty
import tty
from pathlib import Path

import pytest

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.inputs.gather import is_of, open_held
from simple_gpu_scheduler.inputs.reader import Batch, Reader, Source, SourceEnded, check
from simple_gpu_scheduler.jobfile.parse import LineParser

GIB = 2**30


def read_all(*sources: Source, by_null: bool = False) -> tuple[list[object], SourceEnded]:
    messages: list[Batch | SourceEnded] = []
    parser = LineParser(lambda: (80 * GIB,) * 4)
    Reader(list(sources), parser, messages.append, lambda: None, by_null=by_null).run()
    *batches, ended = messages
    assert isinstance(ended, SourceEnded)
    return [job for batch in batches if isinstance(batch, Batch) for job in batch.jobs], ended


def opened(path: Path, data: bytes) -> Source:
    path.write_bytes(data)
    return Source(os.open(path, os.O_RDONLY), path.name)


def test_files_are_read_one_after_another_and_numbered_on(tmp_path: Path) -> None:
    jobs, ended = read_all(opened(tmp_path / "a", b"one\ntwo"), opened(tmp_path / "b", b"three\n"))
    assert [(job.number, str(job.place)) for job in jobs if isinstance(job, Job)] == [
        (1, "line 1 of a"),
        (2, "line 2 of a"),
        (3, "line 1 of b"),
    ]
    assert ended == SourceEnded()


def test_a_source_that_cannot_be_read_is_said_and_the_next_is_read(tmp_path: Path) -> None:
    jobs, ended = read_all(Source(os.open(tmp_path, os.O_RDONLY), "dir"), opened(tmp_path / "b", b"true\n"))
    assert len(jobs) == 1
    problem = "reading dir failed: Is a directory; what follows there was not read"
    assert ended.problem == problem
    _, ended = read_all(*[Source(os.open(tmp_path, os.O_RDONLY), "dir") for _ in range(2)])
    assert ended.problem == f"{problem}; {problem}"


def test_half_a_line_before_a_read_error_is_no_job() -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.write(slave, b"echo whole\necho rm -rf /d")
    os.close(slave)  # reading the other end gives what was written, and then an error
    jobs, ended = read_all(Source(master))
    assert [job.command for job in jobs if isinstance(job, Job)] == [b"echo whole"]
    assert ended.problem.startswith("reading stdin failed: Input/output error")


def test_mistakes_in_a_file_are_found_without_taking_anything_from_it(tmp_path: Path) -> None:
    source = opened(tmp_path / "a", b"true\ntrue #: gpu=1\n" + b"x" * 200_000)
    mistakes = check([source], LineParser(lambda: (80 * GIB,) * 4))
    assert [str(mistake.place) for mistake in mistakes] == ["line 2 of a"]
    assert os.read(source.fd, 5) == b"true\n"


def test_a_large_file_is_checked_in_part_and_a_pipe_not_at_all(tmp_path: Path) -> None:
    source = opened(tmp_path / "a", b"true #: gpu=1\n" + b"true\n" * 400_000 + b"true #: gpu=1\n")
    assert len(check([source, source], LineParser(lambda: (80 * GIB,) * 4))) == 1
    reading, writing = os.pipe()
    os.write(writing, b"true #: gpu=1\n")
    assert check([Source(reading), source], LineParser(lambda: (80 * GIB,) * 4)) == []


def test_only_a_named_pipe_is_held_open(tmp_path: Path) -> None:
    assert is_of(os.open(os.devnull, os.O_RDONLY)).kind == "other"
    assert is_of(os.pipe()[0]).kind == "pipe"
    path = tmp_path / "fifo"
    os.mkfifo(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(fd, 1) == b""
    assert is_of(fd).kind == "fifo"
    fd = open_held(Source(fd)).fd
    os.set_blocking(fd, False)
    with pytest.raises(BlockingIOError):
        os.read(fd, 1)
