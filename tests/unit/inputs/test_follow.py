"""Following real files: growth, truncation, rotation, editors, restarts; by inotify and by looking again."""

import errno
import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.inputs import follow as following
from simple_gpu_scheduler.inputs.follow import FilePiece, FollowedFile, Position
from simple_gpu_scheduler.system import inotify
from tests.conftest import until
from tests.support.followed import ZEROS, Follow, Reader, append, needs_inotify, rotate


def replace(path: Path, data: bytes) -> None:
    """As careful programs write a file."""
    new = path.with_name(".new")
    new.write_bytes(data)
    new.rename(path)


class TestGrowth:
    def test_what_is_there_and_what_comes_is_read_with_the_position_behind_it(self, queue, follow) -> None:
        queue.write_bytes(b"a\nb")
        reader = follow()
        reader.has(b"a\nb")
        append(queue, b"c\n")
        reader.has(b"a\nbc\n")
        state = queue.stat()
        assert reader.pieces[-1].position == ZEROS._replace(device=state.st_dev, inode=state.st_ino).after(b"a\nbc\n")
        assert reader.pieces[-1].position.offset == 5

    def test_a_file_and_its_directory_are_waited_for(self, tmp_path, follow) -> None:
        path = tmp_path / "a" / "b" / "queue.txt"
        reader = follow(path=path)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"a\n")
        reader.has(b"a\n")

    def test_a_big_file_comes_in_pieces_of_the_size_asked_for(self, queue, follow) -> None:
        data = bytes(range(256)) * 1000
        queue.write_bytes(data)
        reader = follow()
        reader.has(data)
        assert max(len(piece.data) for piece in reader.pieces) == 4096

    @settings(max_examples=20, deadline=None)
    @given(chunks=st.lists(st.binary(min_size=1, max_size=9000), max_size=20), stops=st.sets(st.integers(0, 19)))
    def test_any_chunks_are_read_once_whenever_it_is_started_anew(self, chunks: list[bytes], stops: set[int]) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path, whole, seen = Path(directory, "queue"), b"", b""
            path.touch()
            file = FollowedFile(str(path))
            for number, chunk in enumerate(chunks):
                append(path, chunk)
                whole += chunk
                while len(seen) < len(whole):
                    piece = file.read(4096)
                    seen += piece.data
                    if number in stops:
                        file.close()
                        file = FollowedFile(str(path), piece.position)
            file.close()
            assert seen == whole


class TestLockedFile:
    def test_what_a_writer_takes_back_under_its_lock_is_never_read(self, queue, follow) -> None:
        queue.write_bytes(b"one\n")
        reader = follow()
        reader.has(b"one\n")
        for _ in range(3):
            with queue.open("ab", buffering=0) as writer:
                fcntl.flock(writer, fcntl.LOCK_EX)
                writer.write(b"half of a li")
                time.sleep(0.1)
                writer.truncate(4)
        append(queue, b"two\n")
        reader.has(b"one\ntwo\n")

    def test_what_a_writer_leaves_is_read_soon_after_it_is_done(self, queue, follow) -> None:
        reader = follow()
        with queue.open("ab", buffering=0) as writer:
            fcntl.flock(writer, fcntl.LOCK_EX)
            writer.write(b"one\n")
            time.sleep(0.1)
            assert reader.pieces == []
        reader.has(b"one\n")

    def test_a_file_that_stays_locked_is_read_anyway(self, queue, follow, monkeypatch) -> None:
        monkeypatch.setattr(following, "_PATIENCE", 0.2)
        with queue.open("ab", buffering=0) as writer:
            fcntl.flock(writer, fcntl.LOCK_EX)
            writer.write(b"one\n")
            reader = follow()
            reader.has(b"one\n")
            writer.write(b"two\n")
            reader.has(b"one\ntwo\n")

    def test_each_lock_is_waited_for_anew(self, queue, monkeypatch) -> None:
        now = [100.0]
        monkeypatch.setattr(following, "time", SimpleNamespace(monotonic=lambda: now[0]))
        queue.write_bytes(b"one\n")
        file = FollowedFile(str(queue))
        assert file.read(4096).data == b"one\n"
        for _ in range(3):
            with queue.open("ab", buffering=0) as writer:
                fcntl.flock(writer, fcntl.LOCK_EX)
                writer.write(b"half of a li")
                assert file._look(4096) is None
                writer.truncate(4)
                assert file._look(4096) is None
            now[0] += 8
        file.close()

    def test_where_there_are_no_locks_it_is_read(self, queue, follow, monkeypatch) -> None:
        def none(*_: object) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(following.fcntl, "flock", none)
        queue.write_bytes(b"one\n")
        follow().has(b"one\n")

    def test_a_reader_keeps_no_writer_out(self, queue, follow) -> None:
        queue.write_bytes(b"one\n")
        follow().has(b"one\n")
        with queue.open("ab") as writer:
            fcntl.flock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)


class TestAnotherFile:
    def test_a_truncated_file_is_read_from_its_begin(self, queue, follow) -> None:
        queue.write_bytes(b"one\ntwo\nunfinished")
        reader = follow()
        reader.has(b"one\ntwo\nunfinished")
        os.truncate(queue, 0)
        append(queue, b"new\n")
        reader.has(b"one\ntwo\nunfinished", b"new\n")

    def test_copytruncate_gives_each_line_once(self, queue, follow) -> None:
        queue.write_bytes(b"one\n" * 3)
        reader = follow()
        reader.has(b"one\n" * 3)
        queue.with_name("queue.txt.1").write_bytes(queue.read_bytes())
        os.truncate(queue, 0)
        append(queue, b"two\n")
        reader.has(b"one\n" * 3, b"two\n")
        assert reader.stop().offset == 4

    def test_a_rotated_file_is_read_to_its_end_before_the_new_one(self, queue, follow) -> None:
        queue.write_bytes(b"one\n")
        reader = follow()
        reader.has(b"one\n")
        rotate(queue)
        append(queue.with_name("queue.txt.1"), b"two\n")
        queue.write_bytes(b"three\n")
        reader.has(b"one\ntwo\n", b"three\n")
        append(queue, b"four\n")
        reader.has(b"one\ntwo\n", b"three\nfour\n")

    def test_a_rotated_file_is_read_while_there_is_no_new_one(self, queue, follow) -> None:
        queue.write_bytes(b"one\n")
        reader = follow()
        reader.has(b"one\n")
        rotate(queue)
        append(queue.with_name("queue.txt.1"), b"two\n")
        reader.has(b"one\ntwo\n")

    def test_a_writer_that_keeps_the_rotated_file_open_is_waited_for(self, queue, follow, monkeypatch) -> None:
        monkeypatch.setattr(following, "_QUIET", 2.0)
        with queue.open("ab", buffering=0) as writer:
            writer.write(b"one\n")
            reader = follow()
            reader.has(b"one\n")
            rotate(queue)
            queue.write_bytes(b"three\n")
            time.sleep(0.2)
            writer.write(b"two\n")
            reader.has(b"one\ntwo\n")
            reader.has(b"one\ntwo\n", b"three\n")  # though it is still open, in the end

    def test_a_writer_that_never_ends_does_not_keep_the_new_file_waiting(self, queue, follow, monkeypatch) -> None:
        monkeypatch.setattr(following, "_PATIENCE", 0.5)
        with queue.open("ab", buffering=0) as writer:
            writer.write(b"one\n")
            reader = follow()
            reader.has(b"one\n")
            rotate(queue)
            queue.write_bytes(b"three\n")
            end = time.monotonic() + 60
            while len(reader.contents) < 2 and time.monotonic() < end:
                writer.write(b"two\n")
                time.sleep(0.005)
            assert reader.contents[1:] == [b"three\n"]

    @pytest.mark.parametrize("remove", [rotate, os.unlink])
    def test_another_file_that_starts_with_all_that_was_read_is_continued(self, queue, follow, remove) -> None:
        queue.write_bytes(b"python train.py\n")
        reader = follow()
        reader.has(b"python train.py\n")
        remove(queue)
        replace(queue, b"python train.py\n")
        reader.settles()
        assert [piece.change for piece in reader.pieces] == ["", "continued"]
        append(queue, b"more\n")
        reader.has(b"python train.py\nmore\n")

    def test_files_that_come_while_one_is_still_written_to_are_read_in_order(self, queue, follow, monkeypatch) -> None:
        monkeypatch.setattr(following, "_QUIET", 2.0)
        with queue.open("ab", buffering=0) as writer:
            writer.write(b"one\n")
            reader = follow()
            reader.has(b"one\n")
            for number in range(5):
                rotate(queue)
                replace(queue, b"%d\n" % number)
                until(lambda number=number: len(reader.file._coming) == number + 1, "it is noticed")
            writer.write(b"two\n")
        reader.has(b"one\ntwo\n", *(b"%d\n" % number for number in range(5)))

    def test_a_change_is_over_when_nothing_has_come_for_a_while(self, queue, follow) -> None:
        queue.write_bytes(b"one\n")
        reader = follow()
        reader.has(b"one\n")
        os.truncate(queue, 0)
        reader.settles()
        assert [(piece.change, piece.position.offset) for piece in reader.pieces] == [("", 4), ("rewritten", 0)]

    def test_bytes_that_were_changed_in_place_are_noticed(self, queue, follow) -> None:
        queue.write_bytes(b"one\ntwo\n" + b"-" * 10_000)
        reader = follow()
        reader.has(b"one\ntwo\n" + b"-" * 10_000)
        with queue.open("r+b") as file:
            file.write(b"ONE\n")
        reader.has(b"one\ntwo\n" + b"-" * 10_000, b"ONE\ntwo\n" + b"-" * 10_000)

    def test_a_file_that_was_cut_and_grew_beyond_its_old_size_between_two_looks_is_noticed(self, queue) -> None:
        queue.write_bytes(b"one\ntwo\n")
        file = FollowedFile(str(queue))
        assert file.read(4096).data == b"one\ntwo\n"
        queue.write_bytes(b"new\none\ntwo\n")
        assert file.read(4096)[::2] == (b"new\none\ntwo\n", "rewritten")
        file.close()

    def test_a_link_is_followed_to_where_it_leads_now(self, queue, tmp_path, follow) -> None:
        (tmp_path / "one").write_bytes(b"1\n")
        (tmp_path / "else").mkdir()
        (tmp_path / "else" / "two").write_bytes(b"1\n2\n")
        queue.symlink_to("one")
        reader = follow()
        reader.has(b"1\n")
        (tmp_path / "link").symlink_to("else/two")
        (tmp_path / "link").rename(queue)
        reader.has(b"1\n2\n")
        rotate(tmp_path / "else" / "two")  # the file behind the link
        (tmp_path / "else" / "two").write_bytes(b"3\n")
        reader.has(b"1\n2\n", b"3\n")

    def test_a_directory_that_is_a_link_may_lead_elsewhere(self, tmp_path, follow) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "queue").write_bytes(name.encode())
        (tmp_path / "now").symlink_to("one")
        reader = follow(path=tmp_path / "now" / "queue")
        reader.has(b"one")
        (tmp_path / "next").symlink_to("two")
        (tmp_path / "next").rename(tmp_path / "now")
        reader.has(b"one", b"two")


class TestEditors:
    def test_an_unfinished_line_continues_in_the_edited_file(self, queue, follow) -> None:
        queue.write_bytes(b"one\ntw")
        reader = follow()
        reader.has(b"one\ntw")
        replace(queue, b"one\ntwo\n")
        reader.has(b"one\ntwo\n")

    def test_a_file_whose_old_lines_were_changed_is_new(self, queue, follow) -> None:
        queue.write_bytes(b"one\ntwo\n")
        reader = follow()
        reader.has(b"one\ntwo\n")
        replace(queue, b"ONE\ntwo\nthree\n")
        reader.has(b"one\ntwo\n", b"ONE\ntwo\nthree\n")

    def test_a_file_that_was_made_shorter_is_new(self, queue, follow) -> None:
        queue.write_bytes(b"one\ntwo\n")
        reader = follow()
        reader.has(b"one\ntwo\n")
        replace(queue, b"one\n")
        reader.has(b"one\ntwo\n", b"one\n")

    @pytest.mark.parametrize("keeps_backup", [False, True])
    def test_a_file_that_an_editor_moves_away_and_writes_slowly_is_still_followed(
        self, queue, follow, keeps_backup
    ) -> None:
        queue.write_bytes(b"one\ntwo\n")
        reader = follow()
        reader.has(b"one\ntwo\n")
        backup = queue.with_name("queue.txt~")
        queue.rename(backup)
        time.sleep(0.05)
        with queue.open("wb", buffering=0) as file:
            for part in (b"one\n", b"two\nthr", b"ee\n"):
                time.sleep(0.05)
                file.write(part)
        if not keeps_backup:
            backup.unlink()
        until(lambda: reader.contents[-1] == b"one\ntwo\nthree\n", "all is read")


class TestRestart:
    @pytest.fixture
    def position(self, queue: Path, follow: Follow) -> Position:
        """Of a reader that has read two lines."""
        queue.write_bytes(b"one\ntwo\n")
        reader = follow()
        reader.has(b"one\ntwo\n")
        position = reader.stop()
        assert position.offset == 8
        return position

    def test_it_resumes_where_it_was(self, queue, follow, position) -> None:
        append(queue, b"three\n")
        reader = follow(position)
        reader.has(b"three\n")
        assert reader.pieces[-1].position == position.after(b"three\n")

    def test_a_position_before_an_unfinished_line_gives_it_again(self, queue, follow) -> None:
        queue.write_bytes(b"one\ntw")
        reader = follow()
        reader.has(b"one\ntw")
        state = queue.stat()
        follow(Position(state.st_dev, state.st_ino).after(b"one\n")).has(b"tw")

    def test_the_rest_of_a_rotated_file_comes_first(self, queue, follow, position) -> None:
        append(queue, b"three\n")
        rotate(queue)
        queue.write_bytes(b"four\n")
        follow(position).has(b"three\n", b"four\n")

    def test_a_rotated_file_is_found_while_there_is_no_new_one(self, queue, follow, position) -> None:
        append(queue, b"three\n")
        rotate(queue)
        reader = follow(position)
        reader.has(b"three\n")
        queue.write_bytes(b"four\n")
        reader.has(b"three\n", b"four\n")

    def test_a_shorter_file_is_new(self, queue, follow, position) -> None:
        queue.write_bytes(b"new\n")
        follow(position).has(b"", b"new\n")

    def test_an_edited_file_is_resumed(self, queue, follow, position) -> None:
        replace(queue, b"one\ntwo\nthree\n")
        assert queue.stat().st_ino != position.inode
        reader = follow(position)
        reader.has(b"three\n")
        assert reader.pieces[-1].position.inode == queue.stat().st_ino

    def test_an_edited_file_with_other_lines_is_new(self, queue, follow, position) -> None:
        replace(queue, b"ONE\ntwo\nthree\n")
        follow(position).has(b"", b"ONE\ntwo\nthree\n")

    def test_another_file_that_got_the_same_inode_is_new(self, queue, follow, position) -> None:
        queue.write_bytes(b"a wholly other file\n")
        assert queue.stat().st_ino == position.inode
        follow(position).has(b"", b"a wholly other file\n")

    def test_a_file_that_is_gone_is_waited_for(self, queue, follow, position) -> None:
        queue.unlink()
        reader = follow(position)
        queue.write_bytes(b"new\n")
        reader.has(b"", b"new\n")

    def test_a_link_that_leads_elsewhere_is_new(self, queue, tmp_path, follow, position) -> None:
        queue.rename(tmp_path / "other")
        append(tmp_path / "other", b"three\n")
        (tmp_path / "new").write_bytes(b"new\n")
        queue.symlink_to("new")
        follow(position).has(b"three\n", b"new\n")


class TestWaiting:
    def test_it_sleeps_without_waking_up(self, queue) -> None:
        queue.write_bytes(b"one\n")
        needs_inotify()
        reader = Reader(queue)
        reader.has(b"one\n")
        assert reader.file.uses_inotify
        status = Path(f"/proc/self/task/{reader.thread.native_id}/status")
        until(lambda: "(sleeping)" in status.read_text())

        def switches() -> list[str]:
            return [line for line in status.read_text().splitlines() if "ctxt_switches" in line]

        until(lambda: (before := switches()) and not time.sleep(0.1) and before == switches(), "it sleeps")
        before = switches()
        time.sleep(0.5)
        assert switches() == before
        reader.stop()

    def test_looking_again_becomes_rare_and_frequent_again(self, queue, monkeypatch) -> None:
        pauses: list[float] = []
        wait = inotify.Watch.wait

        def quick_wait(watch: inotify.Watch, timeout: float | None = None) -> None:
            pauses.append(round(watch._pause, 1))
            wait(watch, 0.001 if timeout is None else min(timeout, 0.001))
            if len(pauses) == 6:
                append(queue, b"one\n")

        monkeypatch.setattr(inotify.Watch, "wait", quick_wait)
        reader = Reader(queue, uses_inotify=False)
        until(lambda: len(pauses) > 12)
        reader.stop()
        assert pauses[:12] == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]

    def test_stop_ends_a_read_that_waits_and_all_later_ones(self, queue, uses_inotify) -> None:
        queue.write_bytes(b"one\n")
        file = FollowedFile(str(queue), uses_inotify=uses_inotify)
        position = file.read(100).position
        timer = threading.Timer(0.1, file.stop)
        timer.start()
        assert file.read(100) == FilePiece(b"", position)
        append(queue, b"two\n")
        assert file.read(100) == FilePiece(b"", position)
        timer.join()
        file.close()

    def test_a_missing_file_can_be_stopped_too(self, follow) -> None:
        reader = follow()
        reader.stop()
        assert reader.pieces == [FilePiece(b"", ZEROS)]

    @pytest.mark.parametrize("fails", ["inotify_init1", "inotify_add_watch"])
    def test_without_inotify_it_looks_again(self, queue, monkeypatch, fails) -> None:
        class Exhausted:
            def __getattr__(self, name: str) -> Callable[..., int]:
                real = getattr(inotify.ctypes.CDLL(None, use_errno=True), name)

                def fail(*_: object) -> int:
                    inotify.ctypes.set_errno(errno.ENOSPC)
                    return -1

                return fail if name == fails else real

        monkeypatch.setattr(inotify, "_libc", Exhausted())
        queue.write_bytes(b"one\n")
        reader = Reader(queue)
        reader.has(b"one\n")
        append(queue, b"two\n")
        reader.has(b"one\ntwo\n")
        assert not reader.file.uses_inotify
        reader.stop()

    def test_a_file_that_other_machines_write_to_is_looked_at(self, queue, monkeypatch) -> None:
        monkeypatch.setattr(inotify, "is_remote", lambda path: Path(path).stat() and True)
        reader = Reader(queue / "not" / "there")
        assert not reader.file.uses_inotify
        reader.stop()

    def test_rotations_leave_no_watches_and_no_descriptors(self, queue) -> None:
        queue.write_bytes(b"0")
        needs_inotify()
        reader = Reader(queue)
        reader.has(b"0")
        before = len(os.listdir("/proc/self/fd"))
        expected = [b"0"]
        for number in range(1, 4):
            rotate(queue)
            expected.append(str(number).encode())
            queue.write_bytes(expected[-1])
            reader.has(*expected)
        until(lambda: len(reader.file._watch._watched) == 2, "the file and its directory are watched")
        assert len(os.listdir("/proc/self/fd")) == before
        reader.stop()


class TestWhatCannotBeRead:
    def test_a_named_pipe_or_directory_is_refused(self, tmp_path) -> None:
        os.mkfifo(tmp_path / "fifo")
        for path in (tmp_path / "fifo", tmp_path, Path("/dev/null")):
            with pytest.raises(ValueError, match="is not a regular file"):
                FollowedFile(str(path))

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
    def test_what_comes_in_its_place_and_is_no_file_is_an_error(self, queue, follow, make) -> None:
        queue.write_bytes(b"one\n")
        reader = follow()
        reader.has(b"one\n")
        queue.unlink()
        make(queue)
        until(lambda: reader.error)
        assert reader.error
        assert reader.error.strerror == "it is no longer a regular file"
