"""Writing to what may be full, slow or closed, without waiting."""

import os
import socket
import threading
from pathlib import Path

import pytest

from simple_gpu_scheduler.system import writer
from simple_gpu_scheduler.system.writer import Writer
from tests.conftest import until


def test_what_is_written_to_a_file_goes_behind_what_others_wrote(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        subject = Writer(file.fileno())
        for number in range(100):
            subject.write(b"%d\n" % number)
            if number == 50:
                until(lambda: (tmp_path / "file").read_bytes().endswith(b"50\n"))
                os.write(file.fileno(), b"other\n")
        subject.close()
    lines = (tmp_path / "file").read_text().split()
    assert lines.pop(51) == "other"
    assert lines == [str(number) for number in range(100)]


def test_the_first_line_is_written_by_the_caller_itself() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    subject = Writer(writing)
    subject.write(b"now\n")
    assert os.read(reading, 100) == b"now\n"
    subject.close()


def test_a_full_pipe_blocks_no_writer_and_loses_nothing() -> None:
    reading, writing = os.pipe()
    subject = Writer(writing)
    lines = [b"%d %s\n" % (number, b"x" * 1000) for number in range(500)]
    for line in lines:
        subject.write(line)
    got = b""
    while not got.endswith(lines[-1]):
        got += os.read(reading, 65536)
    assert got == b"".join(lines)
    subject.close()


def test_the_shared_end_of_the_pipe_stays_blocking() -> None:
    _, writing = os.pipe()
    Writer(writing).close()
    assert os.get_blocking(writing)


def test_without_a_reader_the_oldest_lines_are_dropped_and_that_is_reported(monkeypatch) -> None:
    monkeypatch.setattr(writer, "_MOST_KEPT", 10_000)
    reading, writing = os.pipe()
    subject = Writer(writing)
    for number in range(5000):
        subject.write(b"%d %s\n" % (number, b"x" * 100))
    assert subject._size <= 10_000
    got = b""
    while b"4999 x" not in got or not got.endswith(b"\n"):
        got += os.read(reading, 65536)
    assert b"lines were dropped because they were not read)\n" in got
    subject.close()


def test_a_reader_that_has_left_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    subject = Writer(writing)
    for _ in range(100):
        subject.write(b"x\n")
    subject.close()


def test_a_socket_is_left_to_the_thread() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        subject = Writer(ours.fileno())
        subject.write(b"one\n")
        subject.write(b"two\n")
        subject.close()
        assert theirs.recv(100) == b"one\ntwo\n"


def test_without_another_thread_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    reading, writing = os.pipe()
    subject = Writer(writing)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for number in range(9):
            subject.write(b"%d" % number)
        subject.close()
    assert os.read(reading, 100) == b"012345678"
    subject = Writer(writing)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            subject.write(b"x" * 40_000)  # more than the pipe takes
    subject.write(b"y")
    got = b""
    while not got.endswith(b"y"):
        got += os.read(reading, 65536)
    assert got == b"x" * 120_000 + b"y"
    subject.close()
