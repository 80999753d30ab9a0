"""Files, pipes and other inputs, read one after another; and how far each was read."""

import os
import pty
import tty
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.inputs.feeds import Piece
from simple_gpu_scheduler.inputs.reader import Batch, EndOfInput, OpenInput, Reader, check
from simple_gpu_scheduler.jobfile.parse import LineParser, Refusal
from simple_gpu_scheduler.jobfile.split import LineCutter

# What makes the places between two logical lines hard to find.
ATOMS = [
    b"a",
    b" ",
    b"\n",
    b"\n",
    b"\r\n",
    b"\\",
    b"\\\n",
    b"# c",
    b"#: gpus=0\n",
    b"x #: gpus=0",
    b"\xef\xbb\xbf",
    b"\0",
]
TEXTS = st.lists(st.sampled_from(ATOMS), max_size=40).map(b"".join)
NOT_TOLD = ReadMark("input-0")


class Chunks:
    """A feed of given pieces, which remembers how far they were used."""

    def __init__(self, chunks: Sequence[bytes], offset: int) -> None:
        self._chunks = list(chunks)
        self._used = offset

    def begin(self) -> None:
        pass

    def read(self) -> Piece:
        return Piece(self._chunks.pop(0) if self._chunks else b"")

    def used(self, size: int) -> ReadMark | None:
        self._used += size
        return ReadMark("input-0", offset=self._used)

    def stop(self) -> bool:
        return False


class Seen(NamedTuple):
    """A job or refusal without its number, which counts from where one began."""

    line: int
    text: str


def seen(each: Job | Refusal) -> Seen:
    return Seen(each.place.line, repr(each[3:]) + repr(each.command) if isinstance(each, Job) else each.problem)


def read_chunks(chunks: Sequence[bytes], mark: ReadMark | None = None, *, by_null: bool = False) -> list[Batch]:
    """All that the reader makes of them."""
    put: list[object] = []
    each = OpenInput(-1, "", Chunks(chunks, mark.offset if mark else 0), mark)
    Reader([each], LineParser(lambda: [80e9] * 4), put.append, lambda: None, by_null=by_null).run()
    assert put.pop() == EndOfInput()
    assert all(isinstance(each, Batch) for each in put)
    return [each for each in put if isinstance(each, Batch)]


def cut_up(text: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[begin:end] for begin, end in pairwise(places)]


def whole_places(text: bytes, *, by_null: bool) -> set[int]:
    """Behind each logical line, found by feeding a byte at a time."""
    cutter = LineCutter(by_null=by_null)
    found = {at + 1 for at in range(len(text)) if cutter.feed(text[at : at + 1])}
    return found | {len(text)}


class TestMarks:
    @settings(max_examples=300, deadline=None)
    @given(text=TEXTS, cuts=st.lists(st.integers(0, 200), max_size=8), by_null=st.booleans(), data=st.data())
    def test_going_on_from_any_mark_gives_the_same_remaining_jobs(
        self, text: bytes, cuts: list[int], by_null: bool, data: st.DataObject
    ) -> None:
        batches = read_chunks(cut_up(text, cuts), by_null=by_null)
        whole = [seen(job) for batch in read_chunks([text] if text else [], by_null=by_null) for job in batch.jobs]
        assert [seen(job) for batch in batches for job in batch.jobs] == whole
        places = whole_places(text, by_null=by_null)
        done = 0
        for batch in batches:
            done += len(batch.jobs)
            mark = batch.mark
            assert mark
            assert mark.offset in places
            rest = text[mark.offset :]
            again = read_chunks(
                cut_up(rest, data.draw(st.lists(st.integers(0, 200), max_size=4))), mark, by_null=by_null
            )
            assert [seen(job) for other in again for job in other.jobs] == whole[done:]

    def test_the_defaults_that_hold_go_with_the_mark(self) -> None:
        first, second = read_chunks([b"#: gpus=0\na\n", b"b\n#: gpus=2\n"])
        assert first.mark
        assert second.mark
        assert (dict(first.mark.defaults), first.mark.line) == ({"gpus": 0}, 3)
        assert (dict(second.mark.defaults), second.mark.line) == ({"gpus": 2}, 5)
        assert [
            job.gpus for batch in read_chunks([b"c\n"], first.mark) for job in batch.jobs if isinstance(job, Job)
        ] == [0]

    def test_a_batch_without_jobs_is_published_for_its_mark(self) -> None:
        (batch,) = read_chunks([b"\n# nothing\n"])
        assert (batch.jobs, batch.mark) == ([], NOT_TOLD._replace(offset=11, line=3))

    def test_no_mark_is_in_a_line_that_continues(self) -> None:
        marks = [batch.mark.offset for batch in read_chunks([b"a\nb \\\n", b" c", b"\nd"]) if batch.mark]
        assert marks == [2, 9, 10]

    def test_a_long_line_takes_all_its_bytes(self) -> None:
        cutter = LineCutter()
        sizes = [cutter.take_whole() for _ in range(100) if not cutter.feed(b"x" * 10_000)]
        assert sizes == [0] * 100
        (line,) = cutter.feed(b"\na")
        assert line.size == 1_000_000
        assert cutter.take_whole() == 1_000_001
        assert cutter.take_whole() == 0
        assert cutter.finish()
        assert cutter.take_whole() == 1


GIB = 2**30


def read_all(*inputs: OpenInput, by_null: bool = False) -> tuple[list[object], EndOfInput]:
    messages: list[Batch | EndOfInput] = []
    parser = LineParser(lambda: (80 * GIB,) * 4)
    Reader(list(inputs), parser, messages.append, lambda: None, by_null=by_null).run()
    *batches, ended = messages
    assert isinstance(ended, EndOfInput)
    return [job for batch in batches if isinstance(batch, Batch) for job in batch.jobs], ended


def opened(path: Path, data: bytes) -> OpenInput:
    path.write_bytes(data)
    return OpenInput(os.open(path, os.O_RDONLY), path.name)


def test_files_are_read_one_after_another_and_numbered_on(tmp_path: Path) -> None:
    jobs, ended = read_all(opened(tmp_path / "a", b"one\ntwo"), opened(tmp_path / "b", b"three\n"))
    assert [(job.number, str(job.place)) for job in jobs if isinstance(job, Job)] == [
        (1, "line 1 of a"),
        (2, "line 2 of a"),
        (3, "line 1 of b"),
    ]
    assert ended == EndOfInput()


def test_an_input_that_cannot_be_read_is_reported_and_the_next_is_read(tmp_path: Path) -> None:
    jobs, ended = read_all(OpenInput(os.open(tmp_path, os.O_RDONLY), "dir"), opened(tmp_path / "b", b"true\n"))
    assert len(jobs) == 1
    problem = "reading dir failed: Is a directory; the rest of it was not read"
    assert ended.problem == problem
    _, ended = read_all(*[OpenInput(os.open(tmp_path, os.O_RDONLY), "dir") for _ in range(2)])
    assert ended.problem == f"{problem}; {problem}"


def test_half_a_line_before_a_read_error_is_no_job() -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.write(slave, b"echo whole\necho rm -rf /d")
    os.close(slave)  # reading the other end gives what was written, and then an error
    jobs, ended = read_all(OpenInput(master))
    assert [job.command for job in jobs if isinstance(job, Job)] == [b"echo whole"]
    assert ended.problem.startswith("reading stdin failed: Input/output error")


def test_mistakes_in_a_file_are_found_without_taking_anything_from_it(tmp_path: Path) -> None:
    each = opened(tmp_path / "a", b"true\ntrue #: gpu=1\n" + b"x" * 200_000)
    mistakes = check([each], LineParser(lambda: (80 * GIB,) * 4))
    assert [str(mistake.place) for mistake in mistakes] == ["line 2 of a"]
    assert os.read(each.fd, 5) == b"true\n"


def test_a_large_file_is_checked_in_part_and_a_pipe_not_at_all(tmp_path: Path) -> None:
    each = opened(tmp_path / "a", b"true #: gpu=1\n" + b"true\n" * 400_000 + b"true #: gpu=1\n")
    assert len(check([each, each], LineParser(lambda: (80 * GIB,) * 4))) == 1
    reading, writing = os.pipe()
    os.write(writing, b"true #: gpu=1\n")
    assert check([OpenInput(reading), each], LineParser(lambda: (80 * GIB,) * 4)) == []
