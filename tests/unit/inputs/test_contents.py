"""What a file held when it was opened is what its jobs are made of, whatever is written to it meanwhile."""

import os
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.inputs import contents as subject
from simple_gpu_scheduler.inputs.contents import Content, content_of
from simple_gpu_scheduler.inputs.feeds import CHUNK, ChangedError

OLD = b"".join(b"echo old %d\n" % number for number in range(2_000))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.txt"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is too large to be kept in memory."""
    monkeypatch.setattr(subject, "WHOLE", -1)


def opened(path: Path) -> Content:
    content = content_of(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path.name)
    assert content
    return content


def pieces(content: Content) -> Iterator[bytes]:
    while data := content.read().data:
        yield data


def replace_in_place(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"echo more\n")


def swap(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"echo new\n")
    other.replace(path)


def touch(path: Path) -> None:
    os.utime(path)


CHANGES: list[Callable[[Path], None]] = [
    lambda path: replace_in_place(path, OLD.replace(b"old", b"new")),
    lambda path: replace_in_place(path, b"echo new\n" * 9),
    lambda path: replace_in_place(path, b""),
    append,
]


@pytest.mark.parametrize("change", [*CHANGES, swap, touch, Path.unlink])
def test_nothing_that_happens_to_a_file_changes_the_jobs_that_were_read_from_it(path: Path, change: Callable) -> None:
    content = opened(path)
    first = content.read().data
    change(path)
    assert first + b"".join(pieces(content)) == OLD


@pytest.mark.parametrize("whole", [subject.WHOLE, -1])
def test_the_first_bytes_are_looked_at_and_still_read(path: Path, monkeypatch: pytest.MonkeyPatch, whole: int) -> None:
    monkeypatch.setattr(subject, "WHOLE", whole)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.lseek(fd, 9, os.SEEK_SET)  # as where a shell has read the first line
    content = Content(fd)
    assert content.first(11) == OLD[9:20]
    assert b"".join(pieces(content)) == OLD[9:]
    assert not content.stop()  # it has an end


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(("age", "seconds"), [(0, 0.02), (60, 0), (-60, 0.02)])
def test_a_large_file_is_read_when_a_later_write_would_show(
    path: Path, monkeypatch: pytest.MonkeyPatch, age: int, seconds: float
) -> None:
    slept: list[float] = []
    now = 1_700_000_000.0
    monkeypatch.setattr(subject.time, "time", lambda: now)
    monkeypatch.setattr(subject.time, "sleep", slept.append)
    os.utime(path, (now - age, now - age))
    opened(path)
    assert slept == [pytest.approx(seconds)]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("change", CHANGES)
def test_a_large_file_that_changes_is_read_no_further(path: Path, change: Callable) -> None:
    content = opened(path)
    assert content.read().data == OLD[:CHUNK]
    change(path)
    with pytest.raises(ChangedError):
        content.read()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("change", [swap, Path.unlink])
def test_a_large_file_that_is_replaced_is_read_to_its_old_end(path: Path, change: Callable) -> None:
    content = opened(path)
    assert content.read().data == OLD[:CHUNK]
    change(path)
    assert b"".join(pieces(content)) == OLD[CHUNK:]


@pytest.mark.usefixtures("large")
def test_a_change_that_leaves_size_and_time_is_seen_around_the_place(path: Path) -> None:
    content = opened(path)
    content.read()
    status = path.stat()
    CHANGES[0](path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ChangedError):
        content.read()


@given(
    st.binary(min_size=1, max_size=3 * CHUNK),
    st.lists(st.tuples(st.integers(0, 3 * CHUNK), st.binary(max_size=CHUNK), st.booleans()), max_size=3),
    st.booleans(),
)
def test_what_is_read_was_always_there_at_the_opening(
    old: bytes, writes: list[tuple[int, bytes, bool]], is_large: bool
) -> None:
    with tempfile.NamedTemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "WHOLE", -1 if is_large else CHUNK * 4)
        file.write(old)
        file.flush()
        content = opened(Path(file.name))
        read = b""
        try:
            for at, data, cuts in writes:
                read += content.read().data
                os.pwrite(file.fileno(), data, at)
                if cuts:
                    file.truncate(at)
            read += b"".join(pieces(content))
        except ChangedError:
            assert is_large
            assert old.startswith(read)
        else:
            assert read == old


def test_a_file_that_is_written_to_while_it_is_read_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = os.pread

    def read_slowly(fd: int, size: int, at: int) -> bytes:
        append(path)
        return read(fd, size, at)

    monkeypatch.setattr(os, "pread", read_slowly)
    with pytest.raises(UserError, match=r"jobs.txt: another program wrote to it .* nothing was started"):
        opened(path)


def test_it_is_read_from_where_the_descriptor_stands_to_where_the_next_program_expects_it(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.read(fd, 11)
    content = content_of(fd, "")
    assert content
    assert content.first(10) == OLD[11:21]
    assert b"".join(pieces(content)) == OLD[11:]
    append(path)
    assert os.read(fd, 100) == b"echo more\n"
    os.close(fd)


def test_what_seems_to_be_empty_is_read_to_its_end() -> None:
    fd = os.open("/proc/self/status", os.O_RDONLY)
    assert content_of(fd, "") is None
    os.close(fd)


def test_reading_a_piece_does_not_copy_all_that_is_left(path: Path) -> None:
    path.write_bytes(OLD * 200)
    content = opened(path)
    content.read()
    tracemalloc.start()
    try:
        assert len(content.read().data) == CHUNK
        assert tracemalloc.get_traced_memory()[1] < 10 * CHUNK
    finally:
        tracemalloc.stop()
