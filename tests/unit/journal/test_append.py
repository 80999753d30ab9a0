"""The appender on disks that are full, broken or do not answer: nothing is lost without need, and no caller waits."""

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from simple_gpu_scheduler.journal import append as subject
from simple_gpu_scheduler.journal.append import Appender, PatientAppender
from simple_gpu_scheduler.system import files
from simple_gpu_scheduler.system.files import is_remote
from tests.conftest import until, work
from tests.support.append import LINES, append_all, whole_lines


class Disk:
    """What `os.write` and `os.fdatasync` do with one file. The rest of the process has the real ones."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.room = 10**9
        self.error = errno.ENOSPC
        self.sync_error = 0
        self.answers = threading.Event()
        self.answers.set()
        self._write, self._sync = os.write, os.fdatasync
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "fdatasync", self.sync)

    def write(self, fd: int, data: bytes) -> int:
        if fd != self.fd:
            return self._write(fd, data)
        self.answers.wait()
        if self.room == 0 and data:
            raise OSError(self.error, os.strerror(self.error))
        written = self._write(fd, data[: self.room])
        self.room -= written
        return written

    def sync(self, fd: int) -> None:
        if fd == self.fd and self.sync_error:
            error, self.sync_error = self.sync_error, 0  # as the kernel does, it is said once
            raise OSError(error, os.strerror(error))
        self._sync(fd)

    def lines(self) -> list[bytes]:
        return whole_lines(self.path)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(tmp_path / "journal", monkeypatch)
    yield disk
    disk.answers.set()  # its file stays open: a thread may still write to it, and not to what gets its number next


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_TRY_AGAIN", 0.0)


def test_each_line_is_in_the_file_when_append_returns(disk: Disk) -> None:
    appender = Appender(disk.fd, "it")
    for number, line in enumerate(LINES[:50], 1):
        appender.append(line)
        assert disk.path.read_bytes() == b"".join(LINES[:number])
    appender.close()
    assert disk.path.read_bytes() == b"".join(LINES[:50])


def test_several_lines_are_one_write(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: writes.append(data) or write(fd, data))
    Appender(disk.fd, "it").append(b"".join(LINES[:9]))
    assert writes == [b"".join(LINES[:9])]


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.ESTALE, errno.EDQUOT])
def test_what_could_not_be_written_is_reported_once_and_arrives_in_order(disk: Disk, error: int) -> None:
    disk.error, disk.room = error, 1000
    appender = Appender(disk.fd, "the journal j")
    said = append_all(appender, LINES[:300])
    assert said == [f"cannot write the journal j: {os.strerror(error)}; jobs continue, and writing is retried"]
    disk.room = 10**9
    appender.append(LINES[300])
    appender.close()
    assert disk.lines() == LINES[:301]


@pytest.mark.usefixtures("_at_once")
def test_a_disk_that_gives_little_room_at_a_time_gets_no_line_twice(disk: Disk) -> None:
    appender = Appender(disk.fd, "it")
    for number, line in enumerate(LINES):
        disk.room = (number * 37) % 150
        append_all(appender, [line])
    disk.room = 10**9
    appender.close()
    assert disk.lines() == LINES
    assert disk.path.stat().st_size < 2 * sum(map(len, LINES))


@pytest.mark.usefixtures("_at_once")
def test_a_torn_line_is_ended_before_the_next_also_when_another_writes_behind_it(disk: Disk) -> None:
    disk.room = len(LINES[0]) + 10
    appender = Appender(disk.fd, "it")
    append_all(appender, LINES[:2])
    disk.room = 10**9
    appender.append(LINES[2])
    assert disk.path.read_bytes() == LINES[0] + LINES[1][:10] + b"\n" + LINES[1] + LINES[2]


def test_a_disk_that_was_full_is_tried_again_though_nothing_more_happens(disk: Disk, monkeypatch) -> None:
    monkeypatch.setattr(subject, "_TRY_AGAIN", 0.05)
    disk.room = 0
    appender = Appender(disk.fd, "it")
    assert append_all(appender, LINES[:3])
    disk.room = 10**9
    until(lambda: disk.lines() == LINES[:3], "what was kept is written")


def test_a_full_disk_is_not_tried_for_each_line(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    monkeypatch.setattr(subject, "_TRY_AGAIN", 3600.0)
    disk.room = 0
    appender = Appender(disk.fd, "it")
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: tries.append(len(data)) or write(fd, data))
    append_all(appender, LINES)
    assert len(tries) <= 3


@pytest.mark.usefixtures("_at_once")
def test_what_is_kept_is_bounded_the_oldest_goes_first_and_the_rest_is_whole(disk: Disk, monkeypatch) -> None:
    monkeypatch.setattr(subject, "_MOST_KEPT", 5_000)
    disk.room = 10
    appender = Appender(disk.fd, "it")
    append_all(appender, LINES)
    assert sum(map(len, appender._kept)) <= 5_000
    disk.room = 10**9
    appender.close()
    kept = disk.lines()
    assert kept == LINES[-len(kept) :]
    assert len(b"".join(kept)) > 4_800


@pytest.mark.unmeasured
def test_the_bound_holds_with_many_lines_and_keeping_them_is_quick(disk: Disk, monkeypatch) -> None:
    monkeypatch.setattr(subject, "_MOST_KEPT", 400_000)
    monkeypatch.setattr(subject, "_TRY_AGAIN", 3600.0)
    disk.room = 0
    appender = Appender(disk.fd, "it")
    lines = [b"x" * 19 + b"\n"] * 40_000
    assert work(lambda: append_all(appender, lines)) < 50 * len(lines)
    assert 390_000 <= sum(map(len, appender._kept)) <= 400_000


def test_close_says_that_the_last_is_not_in_it(disk: Disk) -> None:
    disk.room = 0
    appender = Appender(disk.fd, "it")
    append_all(appender, LINES[:2])
    with pytest.raises(OSError, match="No space left on device; the last events are missing from it"):
        appender.close()


def test_that_lines_did_not_reach_the_disk_is_reported_though_they_could_be_written(disk: Disk) -> None:
    disk.sync_error = errno.EIO
    appender = Appender(disk.fd, "it")
    appender.append(LINES[0])
    until(lambda: append_all(appender, LINES[1:2]), "the next line meets what the sync met")
    assert append_all(appender, LINES[2:9]) == []


def test_that_the_last_lines_did_not_reach_the_disk_is_reported_at_the_end(disk: Disk) -> None:
    appender = Appender(disk.fd, "it")
    disk.sync_error = errno.EIO
    with pytest.raises(OSError, match=r"Input/output error"):
        appender.close()


@pytest.fixture
def patient(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> PatientAppender:
    monkeypatch.setattr(subject, "_PATIENCE", 0.3)
    return PatientAppender(Appender(disk.fd, "it"), "the journal j")


def test_through_the_thread_each_line_is_in_the_file_too(disk: Disk, patient: PatientAppender) -> None:
    for number, line in enumerate(LINES[:50], 1):
        patient.append(line)
        assert disk.path.read_bytes() == b"".join(LINES[:number])
    patient.close()


def test_a_file_system_that_hangs_is_waited_for_once_and_gets_all_later(disk: Disk, patient: PatientAppender) -> None:
    patient.append(LINES[0])
    disk.answers.clear()
    said: list[str] = []
    began = time.monotonic()
    said += append_all(patient, LINES[1:2])
    assert time.monotonic() - began > 0.25
    said += append_all(patient, LINES[2:300])
    assert time.monotonic() - began < 299 * 0.25  # it was not waited for at each line
    assert said == ["the journal j does not respond; jobs continue without it"]
    disk.answers.set()
    until(lambda: disk.lines() == LINES[:300], "all arrives")


def test_after_a_hang_a_line_is_in_the_file_again_when_append_returns(
    disk: Disk, patient: PatientAppender, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.answers.clear()
    append_all(patient, LINES[:5])
    disk.answers.set()
    until(lambda: disk.lines() == LINES[:5])
    until(lambda: len(patient._done._messages) == 5)
    monkeypatch.setattr(subject, "_PATIENCE", 30)
    slow = disk.write
    monkeypatch.setattr(os, "write", lambda fd, data: time.sleep(0.02) or slow(fd, data))
    for number, line in enumerate(LINES[5:15], 6):
        patient.append(line)
        assert disk.lines() == LINES[:number]


def test_a_second_hang_is_reported_again(disk: Disk, patient: PatientAppender) -> None:
    for at in (0, 5):
        disk.answers.clear()
        assert len(append_all(patient, LINES[at : at + 5])) == 1
        disk.answers.set()
        until(lambda end=at + 5: disk.lines() == LINES[:end])
        until(lambda: len(patient._done._messages) == 5)


def test_trouble_goes_through_the_thread(disk: Disk, patient: PatientAppender) -> None:
    disk.room = 0
    assert "No space left on device" in append_all(patient, LINES[:9])[0]
    with pytest.raises(OSError, match="the last events are missing from it"):
        patient.close()


def test_while_it_hangs_what_is_kept_is_bounded(disk: Disk, patient: PatientAppender, monkeypatch) -> None:
    monkeypatch.setattr(subject, "_MOST_KEPT", 5_000)
    disk.answers.clear()
    append_all(patient, LINES)
    disk.answers.set()
    until(lambda: disk.path.stat().st_size and patient._work.empty())
    patient.close()
    assert 4_800 < sum(map(len, disk.lines())) <= 5_200
    assert disk.lines() == LINES[: len(disk.lines())]


def test_close_waits_as_long_as_its_patience_and_says_that_something_is_missing(
    disk: Disk, patient: PatientAppender
) -> None:
    disk.answers.clear()
    append_all(patient, LINES[:3])

    def close() -> None:
        with pytest.raises(OSError, match="the last events are missing from it"):
            patient.close()

    close()


def test_close_waits_for_what_is_being_written(disk: Disk, patient: PatientAppender, monkeypatch) -> None:
    disk.answers.clear()
    append_all(patient, LINES[:3])
    monkeypatch.setattr(subject, "_PATIENCE", 30)
    threading.Timer(0.1, disk.answers.set).start()
    patient.close()
    assert disk.lines() == LINES[:3]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("ext4", False), ("tmpfs", False), ("nfs4", True), ("cifs", True), ("fuse.sshfs", True), ("lustre", True)],
)
def test_whether_another_machine_keeps_a_file_is_read_from_the_mounts(tmp_path, monkeypatch, kind, expected) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 999:9 / /other rw shared:1 - nfs4 server:/other rw\n"
        f"22 1 {os.major(device)}:{os.minor(device)} / /here rw,relatime shared:1 master:2 - {kind} source rw\n"
    )
    monkeypatch.setattr(files, "open", lambda _path, **settings: mounts.open(**settings), raising=False)
    assert is_remote(str(tmp_path)) is expected


def test_where_the_mounts_cannot_be_read_a_file_counts_as_ours(tmp_path: Path, monkeypatch) -> None:
    def refuse(*_args: object, **_settings: object) -> None:
        raise PermissionError

    monkeypatch.setattr(files, "open", refuse, raising=False)
    assert not is_remote(str(tmp_path))
