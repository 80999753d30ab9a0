"""A named pipe with a keeper's intake at its reading end."""

import os
import threading
from pathlib import Path

from simple_gpu_scheduler.keeper.connection import Socket, pair, receive
from simple_gpu_scheduler.keeper.intake import Intake
from simple_gpu_scheduler.keeper.messages import TakeIn
from simple_gpu_scheduler.system.threads import start_thread


class Pipe:
    """A named pipe with its reading end open, and a file to empty it into."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "fifo"
        os.mkfifo(self.path)
        self.reading_end = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
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
        wanted = TakeIn(granted, is_named=True, holds=holds)
        taking = Intake(os.dup(self.reading_end), os.dup(self.spool), its_end, wanted)
        os.close(self.reading_end)
        self.reading_end = -1
        thread = start_thread(taking.run)
        assert told(ours) == [b"open"]
        return ours, thread

    def close(self) -> None:
        for end in self._ends:
            end.close()
        for fd in (self.reading_end, self.spool):
            if fd >= 0:
                os.close(fd)


def told(socket: Socket) -> list[bytes]:
    received = receive(socket)
    assert received
    return received.data.split(b"\0")
