"""A reader of a followed file, and what happens to such a file."""

import ctypes
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simple_gpu_scheduler.inputs.follow import FilePiece, FollowedFile, Position
from simple_gpu_scheduler.system import inotify
from simple_gpu_scheduler.system.threads import start_thread
from tests.support.until import until

ZEROS = Position()


class Reader:
    """A thread that reads a followed file until it is stopped."""

    def __init__(self, path: Path, position: Position | None = None, **settings) -> None:
        self.file = FollowedFile(str(path), position, **settings)
        self.pieces: list[FilePiece] = []
        self.error: OSError | None = None
        self.thread = start_thread(self._read)

    def _read(self) -> None:
        try:
            while (piece := self.file.read(4096)).data or piece.is_settled:
                self.pieces.append(piece)
            self.pieces.append(piece)
        except OSError as error:
            self.error = error

    @property
    def contents(self) -> list[bytes]:
        """What was read, cut where other content begins."""
        contents = [b""]
        for piece in list(self.pieces):
            if piece.change in ("rewritten", "replaced"):
                contents.append(b"")
            contents[-1] += piece.data
        return contents

    @property
    def inode(self) -> int:
        """Of the file that is being read."""
        return self.pieces[-1].position.inode if self.pieces else 0

    def has(self, *contents: bytes) -> None:
        until(lambda: self.contents == list(contents), f"{contents}, not {self.contents}")

    def settles(self) -> None:
        """The last change is over."""
        until(lambda: any(piece.is_settled for piece in list(self.pieces)), "it is settled")

    def stop(self) -> Position:
        """End it, for good; where it was."""
        if self.thread.is_alive():
            self.file.stop()
            self.thread.join(60)
            assert not self.thread.is_alive()
            self.file.close()
        return self.pieces[-1].position if self.pieces else ZEROS


@pytest.fixture(params=[True, False], ids=["inotify", "looking"])
def uses_inotify(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(inotify, "_FIRST_PAUSE", 0.02)
    monkeypatch.setattr(inotify, "_LONGEST_PAUSE", 0.1)
    if request.param:
        needs_inotify()
    return request.param


def needs_inotify() -> None:
    """Skip where others have taken all of it that this machine lets a user have."""
    fd = ctypes.CDLL(None).inotify_init1(os.O_CLOEXEC)
    if fd < 0:
        pytest.skip("this user has no inotify instance left (sysctl fs.inotify.max_user_instances)")
    os.close(fd)


Follow = Callable[..., Reader]


@pytest.fixture
def follow(uses_inotify: bool, queue: Path) -> Iterator[Follow]:
    readers: list[Reader] = []

    def start(position: Position | None = None, path: Path = queue) -> Reader:
        if uses_inotify:
            needs_inotify()
        readers.append(Reader(path, position, uses_inotify=uses_inotify))
        if uses_inotify and not readers[-1].file.uses_inotify:
            needs_inotify()  # others may have taken the last ones in between
        assert readers[-1].file.uses_inotify == uses_inotify
        return readers[-1]

    yield start
    for reader in readers:
        reader.stop()


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    return tmp_path / "queue.txt"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def rotate(path: Path) -> None:
    """Out of the way, to a name that says nothing of its age."""
    path.rename(path.with_name(f"{path.name}.{len(os.listdir(path.parent))}"))
