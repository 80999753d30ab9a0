"""Bytes -> logical lines, however they are cut on the way in."""

import os
import pty
import subprocess
import tty
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.inputs.gather import is_of, open_held
from simple_gpu_scheduler.inputs.reader import Batch, Reader, Source, SourceEnded, check
from simple_gpu_scheduler.jobfile.parse import LONGEST_LINE, LineParser
from simple_gpu_scheduler.jobfile.split import LineCutter

GIB = 2**30


def cut(data: bytes, *sizes: int, by_null: bool = False) -> list[tuple[int, bytes]]:
    cutter = LineCutter(by_null=by_null)
    lines = []
    for size in sizes:
        lines += cutter.feed(data[:size])
        data = data[size:]
    lines += cutter.feed(data) + cutter.finish()
    assert all(size == len(text) for _, text, size in lines)
    return [(number, text) for number, text, _ in lines]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\nb\n", [(1, b"a"), (2, b"b")]),
        (b"a\nb", [(1, b"a"), (2, b"b")]),
        (b"\n\na\n", [(1, b""), (2, b""), (3, b"a")]),
        (b"a\r\nb\r\n", [(1, b"a"), (2, b"b")]),
        (b"a\rb\n", [(1, b"a\rb")]),
        (b"a \\\nb\nc\n", [(1, b"a \\\nb"), (3, b"c")]),
        (b"a \\\r\nb\r\n", [(1, b"a \\\nb")]),
        (b"a \\\\\nb\n", [(1, b"a \\\\"), (2, b"b")]),
        (b"a \\\\\\\nb\n", [(1, b"a \\\\\\\nb")]),
        (b"a \\\nb \\\nc", [(1, b"a \\\nb \\\nc")]),
        (b"a\\\n#b \\\n c\n", [(1, b"a\\\n#b \\\n c")]),
        (b"a \\\n#b \\\n c\n", [(1, b"a \\\n#b \\"), (3, b" c")]),
        (b"echo 'q \\\n# c' \\\n d\n", [(1, b"echo 'q \\\n# c' \\\n d")]),
        (b"echo $'q\\' \\\n# c' \\\n d\n", [(1, b"echo $'q\\' \\\n# c' \\\n d")]),
        (b"a \\", [(1, b"a \\")]),
        (b"a \\\n", [(1, b"a \\")]),
        (b"# comment \\\nb\n", [(1, b"# comment \\"), (2, b"b")]),
        (b"a # comment \\\nb\n", [(1, b"a # comment \\"), (2, b"b")]),
        (b"\xef\xbb\xbfa\nb\n", [(1, b"a"), (2, b"b")]),
    ],
)
def test_lines_end_and_go_on_as_in_a_shell_script(data: bytes, lines: list[tuple[int, bytes]]) -> None:
    assert cut(data) == lines


def test_with_null_jobs_hold_newlines_and_keep_every_byte() -> None:
    assert cut(b"a\\\nb\r\n\0c\0", by_null=True) == [(1, b"a\\\nb\r\n"), (3, b"c")]
    assert cut(b"a\0b", by_null=True) == [(1, b"a"), (1, b"b")]


@given(st.binary(), st.lists(st.integers(0, 20)), st.booleans())
def test_it_does_not_matter_how_the_input_is_cut(data: bytes, sizes: list[int], by_null: bool) -> None:
    if not data.startswith(b"\xef"):  # a mark that is itself cut in two is not looked for
        assert cut(data, *sizes, by_null=by_null) == cut(data, by_null=by_null)


@given(st.lists(st.binary().filter(lambda line: b"\0" not in line)))
def test_every_byte_between_nulls_comes_through(jobs: list[bytes]) -> None:
    if not jobs or not jobs[0].startswith(b"\xef"):
        assert [text for _, text in cut(b"".join(job + b"\0" for job in jobs), by_null=True)] == jobs


def test_an_endless_line_is_not_kept_whole() -> None:
    cutter = LineCutter()
    for _ in range(1000):
        assert cutter.feed(b"x" * 65536) == []
    [line] = cutter.feed(b"\n")
    assert (line.number, line.size) == (1, 65_536_000)
    assert len(line.text) == LONGEST_LINE


def test_a_line_that_is_too_long_still_goes_on_in_the_next() -> None:
    cutter = LineCutter()
    lines = cutter.feed(b"x" * 300_000 + b" \\\ntail\nnext\n")
    assert [(line.number, line.size, line.text[-4:]) for line in lines] == [(1, 300_007, b"xxxx"), (3, 4, b"next")]
    cutter = LineCutter()
    for part in (b"x" * 100_000, b"x" * 200_000, b" \\", b"\nta"):
        assert cutter.feed(part) == []
    assert [line.size for line in cutter.feed(b"il\nnext\n")] == [300_007, 4]


def test_lines_that_go_on_without_end_are_one_and_not_kept_whole() -> None:
    cutter = LineCutter()
    assert all(cutter.feed(b"x y#'z'\\\n" * 1000) == [] for _ in range(300))
    [line] = cutter.feed(b"end\n")
    assert line.number == 1
    assert len(line.text) <= LONGEST_LINE < line.size


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
    problem = "reading dir failed: Is a directory; the rest of it was not read"
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


def test_a_pipe_that_somebody_made_non_blocking_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with subprocess.Popen(["sh", "-c", "echo one"], stdout=writing):
        os.close(writing)
        jobs, ended = read_all(Source(reading))
    assert len(jobs) == 1
    assert not ended.problem


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
