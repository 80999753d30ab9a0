"""What a keeper does with a named pipe that it holds open."""

import os
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from simple_gpu_scheduler.keeper import intake
from simple_gpu_scheduler.keeper.connection import pair, send
from simple_gpu_scheduler.keeper.intake import Intake
from simple_gpu_scheduler.keeper.messages import TakeIn
from simple_gpu_scheduler.system.threads import start_thread
from tests.conftest import until
from tests.support.pipe import Pipe, told

# A feed exists as long as its process, and so do its sockets.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    pipe = Pipe(tmp_path)
    yield pipe
    pipe.close()


class TestIntake:
    def test_what_is_written_is_kept_and_reported(self, pipe: Pipe) -> None:
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
        thread.join(120)
        assert pipe.kept == b"one\ntwo\n"
        with pytest.raises(OSError, match="No such device"):
            pipe.open()

    @pytest.mark.parametrize("splices", [True, False])
    def test_a_line_that_its_writer_did_not_end_is_kept_apart_from_the_next_writers(
        self, pipe: Pipe, monkeypatch: pytest.MonkeyPatch, splices: bool
    ) -> None:
        if not splices:
            monkeypatch.delattr(os, "splice")
        socket, thread = pipe.take_in(holds=True)
        pipe.write(b"half")
        assert [told(socket), told(socket)] == [[b"4"], [b"half", b"5"]]
        pipe.write(b"whole\n")
        assert told(socket) == [b"11"]
        one, other = pipe.open(), pipe.open()
        os.write(one, b"o")
        assert told(socket) == [b"12"]
        os.close(other)
        os.write(one, b"ne")  # it is still there
        os.close(one)
        while told(socket) != [b"half", b"15"]:
            pass
        send(socket, b"close")
        assert told(socket) == [b"closed", b"15"]
        thread.join(120)
        assert pipe.kept == b"half\nwhole\none\n"

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
        thread.join(120)
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
        thread.join(120)
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
        for number in range(50):
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
            thread.join(120)
            writing.join(120)
            os.close(writer)
            assert pipe.kept == b"".join(written)
            pipe.close()

    def test_a_process_that_holds_the_end_a_moment_longer_is_waited_for(self, pipe: Pipe) -> None:
        """As a job does that is being started: a write succeeds while it has the reading end."""
        writer, copy = pipe.open(), os.dup(pipe.reading_end)
        socket, thread = pipe.take_in()
        send(socket, b"close")
        time.sleep(0.1)
        os.write(writer, b"late\n")
        os.close(copy)
        thread.join(120)
        assert pipe.kept == b"late\n"
        os.close(writer)

    def test_another_reader_is_not_waited_for_for_ever(self, pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(intake, "_GONE_WITHIN", 50)
        copy = os.dup(pipe.reading_end)
        socket, thread = pipe.take_in()
        send(socket, b"close")
        thread.join(120)
        assert not thread.is_alive()
        os.close(copy)

    def test_a_file_that_cannot_be_written_is_reported(self, pipe: Pipe) -> None:
        os.close(pipe.spool)
        pipe.spool = os.open("/dev/full", os.O_RDWR)
        writer = pipe.open()
        ours, its_end = pair()
        thread = start_thread(Intake(os.dup(pipe.reading_end), pipe.spool, its_end, TakeIn(100, is_named=True)).run)
        os.write(writer, b"one\n")
        assert told(ours) == [b"open"]
        assert told(ours) == [b"failed", b"No space left on device", b"one\n"]
        thread.join(120)
        os.close(writer)
