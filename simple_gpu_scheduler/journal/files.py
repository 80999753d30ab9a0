"""Where runs are kept, and who holds one: `$XDG_STATE_HOME/simple_gpu_scheduler/runs/ID.jsonl` and what is beside it.

A lock on the journal says that its scheduler lives, a second one that its keeper does. Both are of the open file, so
nobody who asks can undo them, and the kernel ends them with their holder.
"""

import fcntl
import os
import pwd
import re
import stat
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from simple_gpu_scheduler.base.errors import UserError

# The bytes of the file that are locked; that they may lie behind its end does not matter. A keeper's is that of the
# pid of its scheduler behind the first: of several that outlived theirs, each has its own.
SCHEDULER, _KEEPERS = 0, 1
_ALL = 0
SUFFIX = ".jsonl"
_RUN = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_TRIES, _PAUSE = 30, 0.01


def runs_directory(environment: Mapping[str, str]) -> str:
    """Where this user's runs are kept."""
    state = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the standard says that a relative one does not count
        state = os.path.join(environment.get("HOME") or _home(), ".local", "state")
    return os.path.join(state, "simple_gpu_scheduler", "runs")


def _home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user without an entry, as in containers; it is said that no journal can be kept there
        return "/"


def new_run_id() -> str:
    """What tells a run from all others, and sorts by time, to the 4096th part of a second."""
    now = time.time()
    part = int(now % 1 * 4096)
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{part:03x}{os.urandom(2).hex()[:3]}"


def is_run_id(text: str) -> bool:
    """Whether this is the id of a run."""
    return bool(_RUN.fullmatch(text))


def make_directory(directory: str) -> None:
    """Make the directory for runs, for its owner alone. An OSError says why that is not possible."""
    os.makedirs(directory, 0o700, exist_ok=True)
    state = os.stat(directory)
    if state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(1, "it belongs to another user or is writable by others")


def create(path: str) -> int:
    """A new journal, open for appending; an OSError says why there can be none."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def open_to_append(path: str) -> int:
    """A journal that is there, open for reading and appending."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    check_own(fd, path)
    return fd


def read(path: str, most: int | None = None) -> bytes:
    """All of a journal, or its end."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"cannot read the journal {path}: {error.strerror}") from None
    try:
        check_own(fd, path)
        if most is not None:
            os.lseek(fd, max(0, os.fstat(fd).st_size - most), os.SEEK_SET)
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def check_own(fd: int, path: str) -> None:
    """Refuse what another user may have put there."""
    state = os.fstat(fd)
    if not stat.S_ISREG(state.st_mode) or state.st_uid not in (os.getuid(), 0):
        raise UserError(f"{path} is not a journal of yours")


def lock(fd: int, byte: int, *, if_unsure: bool = True) -> bool:
    """Say that we hold it; False when another does. On a file system without locks nobody knows."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _region(fcntl.F_WRLCK, byte))
    except BlockingIOError:
        return False
    except PermissionError:  # another way to say the same
        return False
    except OSError:
        return if_unsure
    return True


def keeper_of(pid: int) -> int:
    """The byte of the keeper of the scheduler that has this pid."""
    return _KEEPERS + pid


def is_kept(fd: int, *, but: int = 0) -> bool:
    """Whether a keeper of any of its schedulers lives; `but` is the pid of one that does not count."""
    own = keeper_of(but)
    return is_locked(fd, own + 1, _ALL) or (but > 0 and is_locked(fd, _KEEPERS, own - _KEEPERS))


def is_locked(fd: int, byte: int, size: int = 1) -> bool:
    """Whether somebody holds it; asking takes nothing from him."""
    try:
        answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _region(fcntl.F_WRLCK, byte, size))
    except OSError:
        return False
    return int(struct.unpack_from("h", answer)[0]) != fcntl.F_UNLCK


def wait_until_unlocked(fd: int, byte: int) -> None:
    """Wait for the end of who holds it."""
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, _region(fcntl.F_RDLCK, byte))
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _region(fcntl.F_UNLCK, byte))


def _region(kind: int, byte: int, size: int = 1) -> bytes:
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, byte, size, 0)


def stem(journal: str) -> str:
    """The begin of the names of the files that belong to a run."""
    return os.path.realpath(journal).removesuffix(SUFFIX)


def run_of(journal: str) -> str:
    """The id of the run that a journal of this name is of."""
    return os.path.basename(journal).removesuffix(SUFFIX)


def socket_of(journal: str) -> str:
    """Where a run listens."""
    return f"{stem(journal)}.sock"


def logs_of(journal: str) -> str:
    """The directory of its jobs' logs, where nobody named one."""
    return f"{stem(journal)}.logs"


def find_runs(directory: str) -> list[str]:
    """The journals of this user, the newest first."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    runs = sorted((name for name in names if name.endswith(SUFFIX) and is_run_id(run_of(name))), reverse=True)
    return [os.path.join(directory, name) for name in runs]


def prune(directory: str, keep: int) -> None:
    """Delete the oldest runs beyond so many, but none that lives, or of which that cannot be said."""
    for path in find_runs(directory)[keep:]:
        try:
            with opened(path) as fd:
                if lock(fd, SCHEDULER, if_unsure=False) and not is_kept(
                    fd
                ):  # held, so that nobody resumes it meanwhile
                    _delete(path)
        except FileNotFoundError:  # a link to a journal elsewhere that is gone
            _delete(path)
        except OSError:
            continue


def _delete(path: str) -> None:
    directory = os.path.dirname(path)
    for each in os.listdir(directory):
        if each.startswith(run_of(path)):
            _delete_all(os.path.join(directory, each))


def _delete_all(path: str) -> None:
    """A file, or the directory of a run's logs."""
    with suppress(OSError):
        if not os.path.isdir(path) or os.path.islink(path):
            os.unlink(path)
            return
        for each in os.scandir(path):
            os.unlink(each)
        os.rmdir(path)


@contextmanager
def opened(path: str) -> Iterator[int]:
    """A journal, open for asking about its locks."""
    try:  # the lock that `lock` takes, and so asking for it, wants a file that may be written to
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def is_alive(path: str) -> bool:
    """Whether the scheduler of a run lives."""
    with suppress(OSError), opened(path) as fd:
        return is_locked(fd, SCHEDULER)
    return False
