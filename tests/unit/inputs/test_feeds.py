"""The bytes of inputs, from real pipes and files: what is given, how far it was used, and going on from there."""

import os
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.inputs import follow as following
from simple_gpu_scheduler.inputs.feeds import Followed, Piece, Plain
from simple_gpu_scheduler.inputs.held_lines import HeldLines
from tests.support.feed import read

# A feed exists as long as its process, and so do its sockets.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class TestPlain:
    def test_a_pipe_that_was_made_non_blocking_is_waited_for(self) -> None:
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
    def test_another_continues_after_what_was_used(self, sizes: list[int], used: int) -> None:
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
            feed._file.close()  # of what a user may watch with there is little, and other tests need it too
            new = Path(directory, "new")  # as an editor does
            new.write_bytes(data + b"more")
            new.rename(path)
            again = Followed(str(path), mark)
            assert read(again, len(data) - 2 * size + 4) == data[2 * size :] + b"more"
            again._file.close()

    def test_a_change_is_not_over_while_old_lines_come_again(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr(following, "_PATIENCE", 2.0)
        monkeypatch.setattr(following, "_QUIET", 5.0)
        path, lines = tmp_path / "queue", [b"%d\n" % number for number in range(30)]
        path.write_bytes(b"".join(lines))
        held = HeldLines(str(path))
        feed = Followed(str(path), None, lambda: held.kept)
        for number, text in enumerate(read(feed, path.stat().st_size).split(), start=1):
            held.add(held.digest(text), number)

        def rewrite() -> None:
            with path.open("wb", buffering=0) as file:
                for each in lines:
                    file.write(each)
                    time.sleep(0.1)

        writer = threading.Thread(target=rewrite)
        writer.start()
        met = 0
        while not (piece := feed.read()).is_settled:
            if piece.change:
                held.restart()
            met += sum(held.take(held.digest(text)) > 0 for text in piece.data.split())
        writer.join()
        assert met == len(lines)
        feed._file.close()

    def test_another_content_begins_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "queue"
        path.write_bytes(b"one\nhalf")
        feed = Followed(str(path), None)
        assert read(feed, 8) == b"one\nhalf"
        feed.used(4)
        os.truncate(path, 0)
        path.write_bytes(b"new\n")
        assert feed.read() == Piece(b"new\n", change="rewritten")
        mark = feed.used(4)
        assert mark
        assert mark.offset == 4
        feed.stop()
        assert feed.read() == Piece()
