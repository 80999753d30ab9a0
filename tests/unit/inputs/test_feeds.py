"""The bytes of inputs, from real pipes and files: what is given, how far it was used, and going on from there."""

import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.inputs import pipes
from simple_gpu_scheduler.inputs.feeds import Feed, Followed, Piece, Plain
from simple_gpu_scheduler.inputs.pipes import Rest, Spooled
from simple_gpu_scheduler.inputs.reader import Batch, Reader, Source, SourceEnded
from simple_gpu_scheduler.jobfile.parse import LineParser, Refusal
from simple_gpu_scheduler.jobfile.split import LineCutter
from simple_gpu_scheduler.keeper import intake
from simple_gpu_scheduler.keeper.intake import Intake
from simple_gpu_scheduler.keeper.messages import Socket, pair, receive, send
from simple_gpu_scheduler.system.threads import start_thread
from tests.conftest import until

# A feed lives as long as its process, and so do its sockets.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

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


def read_all(chunks: Sequence[bytes], mark: ReadMark | None = None, *, by_null: bool = False) -> list[Batch]:
    """All that the reader makes of them."""
    put: list[object] = []
    source = Source(-1, "", Chunks(chunks, mark.offset if mark else 0), mark)
    Reader([source], LineParser(lambda: [80e9] * 4), put.append, lambda: None, by_null=by_null).run()
    assert put.pop() == SourceEnded()
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
        batches = read_all(cut_up(text, cuts), by_null=by_null)
        whole = [seen(job) for batch in read_all([text] if text else [], by_null=by_null) for job in batch.jobs]
        assert [seen(job) for batch in batches for job in batch.jobs] == whole
        places = whole_places(text, by_null=by_null)
        done = 0
        for batch in batches:
            done += len(batch.jobs)
            mark = batch.mark
            assert mark
            assert mark.offset in places
            rest = text[mark.offset :]
            again = read_all(cut_up(rest, data.draw(st.lists(st.integers(0, 200), max_size=4))), mark, by_null=by_null)
            assert [seen(job) for other in again for job in other.jobs] == whole[done:]

    def test_the_defaults_that_hold_go_with_the_mark(self) -> None:
        first, second = read_all([b"#: gpus=0\na\n", b"b\n#: gpus=2\n"])
        assert first.mark
        assert second.mark
        assert (dict(first.mark.defaults), first.mark.line) == ({"gpus": 0}, 3)
        assert (dict(second.mark.defaults), second.mark.line) == ({"gpus": 2}, 5)
        assert [job.gpus for batch in read_all([b"c\n"], first.mark) for job in batch.jobs if isinstance(job, Job)] == [
            0
        ]

    def test_a_batch_without_jobs_is_told_for_its_mark(self) -> None:
        (batch,) = read_all([b"\n# nothing\n"])
        assert (batch.jobs, batch.mark) == ([], NOT_TOLD._replace(offset=11, line=3))

    def test_no_mark_is_in_a_line_that_goes_on(self) -> None:
        marks = [batch.mark.offset for batch in read_all([b"a\nb \\\n", b" c", b"\nd"]) if batch.mark]
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


class Pipe:
    """A named pipe with its reading end open, and a file to empty it into."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "fifo"
        os.mkfifo(self.path)
        self.source = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.spool = os.open(directory / "spool", os.O_RDWR | os.O_CREAT)
        self._ends: list[Socket] = []

    def open(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)

    def write(self, data: bytes) -> None:
        fd = self.open()
        os.write(fd, data)
        os.close(fd)

    @property
    def kept(self) -> bytes:
        return os.pread(self.spool, 1 << 26, 0)

    def take_in(self, granted: int = 1 << 20, *, holds: bool = False) -> tuple[Socket, threading.Thread]:
        """An intake of its own, as the keeper has it."""
        ours, its_end = pair()
        self._ends += [ours, its_end]
        taking = Intake(os.dup(self.source), os.dup(self.spool), its_end, granted, is_named=True, holds=holds)
        os.close(self.source)
        self.source = -1
        thread = start_thread(taking.run)
        assert told(ours) == [b"open"]
        return ours, thread

    def close(self) -> None:
        for end in self._ends:
            end.close()
        for fd in (self.source, self.spool):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    pipe = Pipe(tmp_path)
    yield pipe
    pipe.close()


def told(socket: Socket) -> list[bytes]:
    message = receive(socket)
    assert message
    return message.fields


class TestIntake:
    def test_what_is_written_is_kept_and_told(self, pipe: Pipe) -> None:
        writer = pipe.open()
        socket, thread = pipe.take_in()
        os.write(writer, b"one\n")
        assert told(socket) == [b"4"]
        assert pipe.kept == b"one\n"
        os.close(writer)
        assert told(socket) == [b"end"]
        pipe.write(b"two\n")
        assert told(socket) == [b"8"]
        send(socket, b"close")
        assert told(socket) == [b"closed", b"8"]
        thread.join(5)
        assert pipe.kept == b"one\ntwo\n"
        with pytest.raises(OSError, match="No such device"):
            pipe.open()

    def test_it_takes_no_more_than_was_granted_and_a_pipe(self, pipe: Pipe) -> None:
        writer = pipe.open()
        socket, thread = pipe.take_in(1000)
        room = 0
        with suppress(BlockingIOError):
            while room < 1_000_000:
                room += os.write(writer, b"x" * 4096)
                time.sleep(0.002)
        assert len(pipe.kept) <= 1000 + 65536
        assert room <= 1000 + 2 * 65536 + 4096
        before = len(pipe.kept)
        send(socket, b"10000000")
        until(lambda: len(pipe.kept) == room)
        assert before < room
        send(socket, b"close")
        thread.join(5)
        os.close(writer)

    def test_when_the_scheduler_is_gone_the_rest_is_kept_and_the_pipe_is_closed(self, pipe: Pipe) -> None:
        writer = pipe.open()
        socket, thread = pipe.take_in(1)  # so that something is left in the pipe
        os.write(writer, b"one\n")
        assert told(socket) == [b"4"]
        os.write(writer, b"two\n")
        time.sleep(0.05)
        assert pipe.kept == b"one\n"
        socket.close()
        thread.join(5)
        assert pipe.kept == b"one\ntwo\n"
        with pytest.raises(BrokenPipeError):
            os.write(writer, b"three\n")
        os.close(writer)

    @pytest.mark.parametrize("splices", [True, False])
    def test_a_write_that_succeeds_around_the_end_is_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, splices: bool
    ) -> None:
        if not splices:
            monkeypatch.delattr(os, "splice")
        chance = random.Random(5)
        for number in range(100):
            directory = tmp_path / str(number)
            directory.mkdir()
            pipe = Pipe(directory)
            writer = pipe.open()
            socket, thread = pipe.take_in()
            written: list[bytes] = []

            def write(writer: int = writer, written: list[bytes] = written) -> None:
                try:
                    while len(written) < 10_000:
                        os.write(writer, b"%d\n" % len(written))
                        written.append(b"%d\n" % len(written))
                except BrokenPipeError:
                    return

            writing = start_thread(write)
            time.sleep(chance.uniform(0, 0.003))
            send(socket, b"close")
            thread.join(5)
            writing.join(5)
            os.close(writer)
            assert pipe.kept == b"".join(written)
            pipe.close()

    def test_who_has_the_end_for_a_moment_more_is_waited_for(self, pipe: Pipe) -> None:
        """As a job does that is being started: a write succeeds while it has the reading end."""
        writer, copy = pipe.open(), os.dup(pipe.source)
        socket, thread = pipe.take_in()
        send(socket, b"close")
        time.sleep(0.1)
        os.write(writer, b"late\n")
        os.close(copy)
        thread.join(5)
        assert pipe.kept == b"late\n"
        os.close(writer)

    def test_another_reader_is_not_waited_for_for_ever(self, pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(intake, "_GONE_WITHIN", 50)
        copy = os.dup(pipe.source)
        socket, thread = pipe.take_in()
        send(socket, b"close")
        thread.join(5)
        assert not thread.is_alive()
        os.close(copy)

    def test_a_file_that_cannot_be_written_is_said(self, pipe: Pipe) -> None:
        os.close(pipe.spool)
        pipe.spool = os.open("/dev/full", os.O_RDWR)
        writer = pipe.open()
        ours, its_end = pair()
        thread = start_thread(Intake(os.dup(pipe.source), pipe.spool, its_end, 100, is_named=True, holds=False).run)
        os.write(writer, b"one\n")
        assert told(ours) == [b"open"]
        assert told(ours) == [b"failed", b"No space left on device", b"one\n"]
        thread.join(5)
        os.close(writer)


Start = Callable[..., Spooled]


@pytest.fixture
def spooled(pipe: Pipe) -> Start:
    """A feed without a keeper."""

    def start(**settings) -> Spooled:
        feed = Spooled("input-0", pipe.source, pipe.spool, None, is_named=True, **settings)
        feed.begin()
        return feed

    return start


def read(feed: Feed, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = feed.read()
        assert piece.data
        data += piece.data
    return data


class TestSpooled:
    def test_it_ends_for_now_with_its_writers_and_for_good_when_stopped(self, pipe: Pipe, spooled: Start) -> None:
        writer = pipe.open()
        feed = spooled()
        os.write(writer, b"one\ntw")
        assert read(feed, 6) == b"one\ntw"
        assert feed.used(4) == NOT_TOLD._replace(offset=4)
        os.close(writer)
        assert feed.read() == Piece(more_may_come=True)
        pipe.write(b"o\n")
        assert read(feed, 2) == b"o\n"
        pipe.write(b"late\n")
        assert feed.stop()
        assert read(feed, 5) == b"late\n"
        assert feed.read() == Piece() == feed.read()

    def test_it_goes_on_where_another_was(self, pipe: Pipe, spooled: Start) -> None:
        os.write(pipe.spool, b"one\ntwo\n")
        feed = spooled(offset=4)
        assert read(feed, 4) == b"two\n"
        pipe.write(b"three\n")
        assert read(feed, 6) == b"three\n"
        assert feed.used(10) == NOT_TOLD._replace(offset=14)
        feed.stop()

    def test_much_more_than_may_be_ahead_comes_through(
        self, pipe: Pipe, spooled: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pipes, "AHEAD", 10_000)
        data = os.urandom(2_000_000)
        writer = pipe.open()
        os.set_blocking(writer, True)
        feed = spooled()

        def write() -> None:
            with os.fdopen(writer, "wb", buffering=0) as file:
                at = 0
                while at < len(data):
                    at += file.write(data[at:]) or 0

        thread = start_thread(write)
        assert read(feed, len(data)) == data
        thread.join(5)
        feed.stop()

    def test_when_the_keeper_is_killed_it_goes_on_here(self, pipe: Pipe) -> None:
        """The keeper of this test takes one piece and is gone."""
        ends: list[int] = []

        def hand_over(_granted: int, files: Sequence[int], *, is_named: bool, holds: bool) -> None:
            assert is_named
            assert not holds
            ends.append(os.dup(files[2]))
            os.write(ends[0], b"open")

        writer = pipe.open()
        feed = Spooled("input-0", pipe.source, pipe.spool, hand_over, is_named=True)
        feed.begin()
        os.write(pipe.spool, b"one\n")
        os.write(ends[0], b"4")
        assert read(feed, 4) == b"one\n"
        os.write(pipe.spool, b"two\n")  # and did not live to tell of it
        os.close(ends[0])
        os.write(writer, b"three\n")
        assert read(feed, 10) == b"two\nthree\n"
        feed.stop()
        os.close(writer)

    def test_what_cannot_be_kept_is_said_and_read_all_the_same(self, pipe: Pipe, spooled: Start) -> None:
        os.close(pipe.spool)
        pipe.spool = os.open("/dev/full", os.O_RDWR)
        feed = spooled()
        writer = pipe.open()
        os.write(writer, b"one\n")
        assert "cannot be saved: No space left" in feed.read().problem
        os.write(writer, b"two\n")
        assert read(feed, 8) == b"one\ntwo\n"
        assert feed.used(8) == NOT_TOLD  # of what is in memory nothing is remembered
        feed.stop()
        os.close(writer)


class TestRest:
    def test_it_is_what_was_not_used(self, tmp_path: Path) -> None:
        data = os.urandom(10_000)
        (tmp_path / "spool").write_bytes(data)
        fd = os.open(tmp_path / "spool", os.O_RDONLY)
        feed = Rest("input-0", fd, 100)
        assert read(feed, 9_900) == data[100:]
        assert feed.read() == Piece()
        assert feed.used(50) == NOT_TOLD._replace(offset=150)
        assert not feed.stop()
        os.close(fd)


class TestPlain:
    def test_a_pipe_that_somebody_made_non_blocking_is_waited_for(self) -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        feed = Plain(reading)
        timer = threading.Timer(0.1, os.write, (writing, b"one\n"))
        timer.start()
        assert feed.read() == Piece(b"one\n")
        timer.join()
        os.close(writing)
        assert feed.read() == Piece()
        assert feed.used(4) is None
        os.close(reading)


class TestFollowed:
    @settings(max_examples=50, deadline=None)
    @given(sizes=st.lists(st.integers(1, 9_000), min_size=1, max_size=6), used=st.integers(0, 100))
    def test_another_goes_on_behind_what_was_used(self, sizes: list[int], used: int) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path, data = Path(directory, "queue"), os.urandom(sum(sizes))
            path.write_bytes(data)
            feed = Followed(str(path), None)
            assert read(feed, len(data)) == data
            first = feed.used(size := len(data) * used // 200)
            mark = feed.used(size)
            assert first
            assert mark
            assert (mark.source, mark.inode, mark.offset) == (str(path), path.stat().st_ino, 2 * size)
            feed.stop()
            new = Path(directory, "new")  # as an editor does
            new.write_bytes(data + b"more")
            new.rename(path)
            again = Followed(str(path), mark)
            assert read(again, len(data) - 2 * size + 4) == data[2 * size :] + b"more"
            again.stop()

    def test_another_content_begins_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "queue"
        path.write_bytes(b"one\nhalf")
        feed = Followed(str(path), None)
        assert read(feed, 8) == b"one\nhalf"
        feed.used(4)
        os.truncate(path, 0)
        path.write_bytes(b"new\n")
        assert feed.read() == Piece(b"new\n", is_new=True)
        mark = feed.used(4)
        assert mark
        assert mark.offset == 4
        feed.stop()
        assert feed.read() == Piece()
