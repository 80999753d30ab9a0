"""Where runs are kept, and which are active: `$XDG_STATE_HOME/simple_gpu_scheduler/runs/ID.jsonl` and its other files.

A lock on the journal shows that its scheduler is running, a second one that its keeper is. Both belong to the open
file, so asking for them cannot undo them, and the kernel releases them when their holder ends.
"""

import fcntl
import os
import pwd
import stat
import sys
import time

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Mapping

# The bytes of the file that are locked; they may be past its end. A keeper locks the byte at 1 + its scheduler's pid,
# so that several keepers whose schedulers died have one each.
SCHEDULER, _KEEPERS = 0, 1
_ALL = 0
SUFFIX = ".jsonl"
_HEX = "0123456789abcdef"
_TRIES, _PAUSE = 30, 0.01


def runs_directory(environment: Mapping[str, str]) -> str:
    """Where this user's runs are kept."""
    state = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # by the standard, a relative path is ignored
        state = os.path.join(environment.get("HOME") or _home(), ".local", "state")
    return os.path.join(state, "simple_gpu_scheduler", "runs")


def _home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user without an entry, as in containers; creating the journal will fail with a message
        return "/"


def new_run_id() -> str:
    """A unique run ID, which sorts by time, to 1/4096 of a second."""
    now = time.time()
    part = int(now % 1 * 4096)
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{part:03x}{os.urandom(2).hex()[:3]}"


def is_run_id(text: str) -> bool:
    """Whether this is a run ID, as `20261119-074704-29a070`."""
    if [len(part) for part in text.split("-")] != [8, 6, 6]:
        return False
    digits = text[:8] + text[9:15]
    return digits.isascii() and digits.isdigit() and not text[16:].strip(_HEX)


def make_directory(directory: str) -> None:
    """Make the directory for runs, accessible only to its owner. An OSError says why that failed."""
    os.makedirs(directory, 0o700, exist_ok=True)
    state = os.stat(directory)
    if state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(1, "it belongs to another user or is writable by others")


def create(path: str) -> int:
    """Create a journal and open it for appending; an OSError says why that failed."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def open_to_append(path: str) -> int:
    """Open an existing journal for reading and appending."""
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
    """Lock it; False if another process has. On a file system without locks this always succeeds."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, region(fcntl.F_WRLCK, byte))
    except BlockingIOError:
        return False
    except PermissionError:  # another errno for the same
        return False
    except OSError:
        return if_unsure
    return True


def keeper_of(pid: int) -> int:
    """The lock byte of the keeper of the scheduler with this pid."""
    return _KEEPERS + pid


def is_kept(fd: int, *, but: int = 0) -> bool:
    """Whether a keeper of any of its schedulers is running; `but` is the pid of a scheduler to ignore."""
    own = keeper_of(but)
    return is_locked(fd, own + 1, _ALL) or (but > 0 and is_locked(fd, _KEEPERS, own - _KEEPERS))


def is_locked(fd: int, byte: int, size: int = 1) -> bool:
    """Whether a process has locked it."""
    try:
        answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, region(fcntl.F_WRLCK, byte, size))
    except OSError:
        return False
    return int.from_bytes(answer[:2], sys.byteorder) != fcntl.F_UNLCK


def wait_until_unlocked(fd: int, byte: int) -> None:
    """Wait until the process that locked it ends."""
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, region(fcntl.F_RDLCK, byte))
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, region(fcntl.F_UNLCK, byte))


def region(kind: int, byte: int, size: int = 1) -> bytes:
    """A `struct flock`: two short numbers, two long ones, each at a multiple of its size, and a pid."""
    numbers = ((kind, 2), (os.SEEK_SET, 2), (0, 4), (byte, 8), (size, 8), (0, 8))
    return b"".join([number.to_bytes(bytes_, sys.byteorder) for number, bytes_ in numbers])


def stem(journal: str) -> str:
    """The common prefix of the paths of a run's files."""
    return os.path.realpath(journal).removesuffix(SUFFIX)


def run_of(journal: str) -> str:
    """The run ID in the name of a journal."""
    return os.path.basename(journal).removesuffix(SUFFIX)


def socket_of(journal: str) -> str:
    """The socket of a run."""
    return f"{stem(journal)}.sock"


def samples_of(journal: str) -> str:
    """The curves of what its attempts did to their GPUs."""
    return f"{stem(journal)}.samples"


def logs_of(journal: str) -> str:
    """The default directory of its jobs' logs."""
    return f"{stem(journal)}.logs"


def find_runs(directory: str) -> list[str]:
    """The journals of this user, the newest first."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    runs = sorted((name for name in names if name.endswith(SUFFIX) and is_run_id(run_of(name))), reverse=True)
    return [os.path.join(directory, name) for name in runs]


class opened:  # noqa: N801 - said where it is entered: with opened(path) as fd
    """Open a journal to ask about its locks."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> int:
        try:  # the lock that `lock` takes, and so asking for it, wants a file that may be written to
            self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        return self._fd

    def __exit__(self, *_error: object) -> None:
        os.close(self._fd)


def is_alive(path: str) -> bool:
    """Whether the scheduler of a run is running."""
    with suppress(OSError), opened(path) as fd:
        return is_locked(fd, SCHEDULER)
    return False


def is_active(path: str) -> bool:
    """Whether the scheduler of a run is running, or its keeper, which still ends its jobs."""
    with suppress(OSError), opened(path) as fd:
        return is_locked(fd, SCHEDULER) or is_kept(fd)
    return False
