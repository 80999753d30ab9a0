"""What is read of a named pipe that a keeper takes in."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.inputs import pipes
from simple_gpu_scheduler.inputs.feeds import Piece
from simple_gpu_scheduler.inputs.pipes import Rest, Spooled
from simple_gpu_scheduler.keeper.messages import TakeIn
from simple_gpu_scheduler.system.threads import start_thread
from tests.support.feed import read
from tests.support.pipe import Pipe

# A feed exists as long as its process, and so do its sockets.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
NOT_TOLD = ReadMark("input-0")


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    pipe = Pipe(tmp_path)
    yield pipe
    pipe.close()


Start = Callable[..., Spooled]


@pytest.fixture
def spooled(pipe: Pipe) -> Start:
    """A feed without a keeper."""

    def start(**settings) -> Spooled:
        feed = Spooled("input-0", pipe.reading_end, pipe.spool, None, TakeIn(is_named=True), **settings)
        feed.begin()
        return feed

    return start


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

    def test_it_resumes_where_another_was(self, pipe: Pipe, spooled: Start) -> None:
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
        thread.join(120)
        feed.stop()

    def test_when_the_keeper_is_killed_it_continues_here(self, pipe: Pipe) -> None:
        """The keeper of this test takes one piece and is gone."""
        ends: list[int] = []

        def hand_over(wanted: TakeIn, files: Sequence[int]) -> None:
            assert wanted == TakeIn(wanted.granted, is_named=True)
            ends.append(os.dup(files[2]))
            os.write(ends[0], b"open")

        writer = pipe.open()
        feed = Spooled("input-0", pipe.reading_end, pipe.spool, hand_over, TakeIn(is_named=True))
        feed.begin()
        os.write(pipe.spool, b"one\n")
        os.write(ends[0], b"4")
        assert read(feed, 4) == b"one\n"
        os.write(pipe.spool, b"two\n")  # and died before it could say so
        os.close(ends[0])
        os.write(writer, b"three\n")
        assert read(feed, 10) == b"two\nthree\n"
        feed.stop()
        os.close(writer)

    def test_what_cannot_be_saved_is_reported_and_read_anyway(self, pipe: Pipe, spooled: Start) -> None:
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
