"""Processes of this machine: starting one in its own session, waiting for it, signalling it, adopting its orphans.

Linux only. It knows pids and wait statuses; not jobs, outcomes or deadlines. `leftovers` handles what a process
leaves behind.
"""

import ctypes
import errno
import os
import sys
import time
from _thread import get_native_id

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import Lock, signal
from simple_gpu_scheduler.base.values import Iterable, NamedTuple, Sequence

_PR_SET_CHILD_SUBREAPER = 36
_SPAWN_FLAGS = 0x04 | 0x08 | 0x80  # SETSIGDEF, SETSIGMASK, SETSID
_RLIMIT_MSGQUEUE, _INSTEAD_OF_UNLIMITED = 12, 2**40
TAGS = 100_000
_FIRST_INHERITED = 100
_CORE_DUMPED = 0x80
_PAGE = 4096
_ABOUT_A_CLONE = 0.00005
_ROOMY = 1024  # bytes; the C library's opaque structs have at most 336
# The system call, of which the C library hides that it also tells what a process used, by machine.
_WAITID = {"x86_64": 247, "aarch64": 95, "riscv64": 95, "ppc64le": 272, "s390x": 281}.get(os.uname().machine, 0)
_RUSAGE_SELF, _LONGS_OF_RUSAGE, _BLOCK = 0, 18, 512

# A start that failed for one of these reasons may succeed later.
REFUSALS = (errno.EAGAIN, errno.ENOMEM)

# Descriptors, each with its number in the program: 0, 1 or 2.
Streams = tuple[tuple[int, int], ...]

# Signals that Python or this program ignores, which a job must not inherit as ignored.
_TO_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU)

# PyDLL keeps the interpreter lock during the call. For a call that never blocks that is the point: releasing the lock
# and reacquiring it after another thread costs more than everything else at the end of a job.
_libc = ctypes.PyDLL(None)
# CDLL releases it, unlike os.posix_spawn: the other threads continue while the kernel loads the program.
_slow_libc = ctypes.CDLL(None)


def adopt_orphans() -> None:
    """From now on a process whose parent ends becomes a child of the main thread instead of init."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would let no exit code be read
    if sys.platform != "linux" or _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise UserError("this system cannot tell which processes a job leaves behind; Linux 3.4 or newer is needed")


class Starter:
    """Starts programs in a session of their own, with nothing to read, and with no signal blocked or ignored by us.

    This is posix_spawn by hand: `subprocess` takes 8 ms to load and twice as long to start a program, and
    `os.posix_spawn` keeps the interpreter lock while it waits, which costs a fifth of the throughput.
    """

    def __init__(self, environment: Sequence[bytes] = ()) -> None:
        self._environment = _array(environment)  # keeps alive what the pointers point to
        self._pointers = bytes(self._environment)[: len(environment) * ctypes.sizeof(ctypes.c_char_p)]
        self._tagging = Lock()
        self._unborn: set[int] = set()  # the thread that tagged last, until its process exists or cannot be started
        self._actions: dict[tuple[Streams, tuple[int, ...]], ctypes.Array[ctypes.c_char]] = {}
        self._attributes = ctypes.create_string_buffer(_ROOMY)
        signals = ctypes.create_string_buffer(_ROOMY)
        _libc.posix_spawnattr_init(self._attributes)
        _libc.sigemptyset(signals)
        _libc.posix_spawnattr_setsigmask(self._attributes, signals)
        # Naming all that are not ignored spares the C library from asking for each: 60 system calls.
        for number in signal.valid_signals():
            if number in _TO_DEFAULT or signal.getsignal(number) != signal.SIG_IGN:
                _libc.sigaddset(signals, int(number))
        _libc.posix_spawnattr_setsigdefault(self._attributes, signals)
        if _libc.posix_spawnattr_setflags(self._attributes, ctypes.c_short(_SPAWN_FLAGS)) != 0:
            raise UserError("this C library cannot start a job in its own session; glibc 2.26 or newer is needed")

    def start(
        self,
        argv: Sequence[bytes],
        more: Sequence[bytes] = (),
        inherits: tuple[int, ...] = (),
        streams: Streams = (),
        tag: int = 0,
    ) -> int:
        """Start the program argv[0] with `more` in its environment; its pid. An OSError says why that failed.

        Its output goes where ours goes, and it reads nothing, unless `streams` say otherwise.
        It has copies of the descriptors that it `inherits` under high numbers, where a script does not step on them.
        With a `tag`, it and all below it have that. For this, the calling thread must not be the main one, which gets
        orphans, and must have reaped what it started before.
        """
        pid, arguments = ctypes.c_int(), _array(argv)
        # Only the pointers to `more` are created each time: creating all takes longer than everything else here.
        own = _array(more)  # keeps alive, as above
        environment = self._pointers + bytes(own)
        actions = self._actions_for(inherits, streams)
        if tag:
            self._tag_next(tag)
        error = _slow_libc.posix_spawn(ctypes.byref(pid), argv[0], actions, self._attributes, arguments, environment)
        self._unborn.discard(get_native_id())
        if error:
            raise OSError(error, os.strerror(error))
        return pid.value

    def _tag_next(self, tag: int) -> None:
        """Tag this process, so that what this thread starts next has the tag from birth, even if we are killed.

        A thread waits for the one that did so before it only until that one's process exists, and not until its program
        is loaded, which takes much longer.
        """
        with self._tagging:
            while not all(map(_has_child, tuple(self._unborn))):
                time.sleep(_ABOUT_A_CLONE)
            self._unborn = {get_native_id()}
            _limits[0] = UNTAGGED - tag
            _libc.prlimit(0, _RLIMIT_MSGQUEUE, _limits, None)

    def _actions_for(self, inherits: tuple[int, ...], streams: Streams) -> "ctypes.Array[ctypes.c_char]":
        """What to do with descriptors in the new process. The same few sets recur, and are cached."""
        key = streams, inherits
        actions = self._actions.get(key)
        if actions is None:
            actions = ctypes.create_string_buffer(_ROOMY)
            _libc.posix_spawn_file_actions_init(actions)
            _libc.posix_spawn_file_actions_addopen(actions, 0, b"/dev/null", os.O_RDONLY, 0)
            for fd, stream in streams:
                _libc.posix_spawn_file_actions_adddup2(actions, fd, stream)
            for fd, copy in inherited_as(inherits):
                _libc.posix_spawn_file_actions_adddup2(actions, fd, copy)
            self._actions[key] = actions
        return actions


def why_refused(number: int) -> str:
    """Why the system starts no process now, for an errno that says that it may later; empty for others."""
    if number not in REFUSALS:
        return ""
    import resource  # noqa: PLC0415 - this is rare

    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if number == errno.ENOMEM:
        return "the system has no memory for a new process"
    limit = f"{most} for this user" if most != resource.RLIM_INFINITY else "of the machine or container"
    return f"the system allows no new process (limit {limit}, ulimit -u)"


def inherited_as(descriptors: Sequence[int]) -> list[tuple[int, int]]:
    """Each with its number in a process that inherits it: above those that scripts use, and over none of the rest."""
    lowest = max(min(_FIRST_INHERITED, os.sysconf("SC_OPEN_MAX") // 2), *(fd + 1 for fd in descriptors), 0)
    return [(fd, lowest + at) for at, fd in enumerate(descriptors)]


def _array(strings: Sequence[bytes]) -> "ctypes.Array[ctypes.c_char_p]":
    return (ctypes.c_char_p * (len(strings) + 1))(*strings)


def wait_for_end(pid: int) -> int:
    """Wait until the process has ended: its wait status. Its pid stays its own until `reap`."""
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert found  # noqa: S101 - without WNOHANG there is one
    if found.si_code == os.CLD_EXITED:
        return found.si_status << 8
    return found.si_status | (_CORE_DUMPED if found.si_code == os.CLD_DUMPED else 0)


class Used(NamedTuple):
    """What a process and those below it that were waited for used: CPU seconds, and bytes.

    `memory` is the most that one of them had; 0 if that is not known to be more than we have.
    """

    seconds: float
    memory: int
    read: int
    written: int


def used_by(pid: int) -> Used | None:
    """What a child used that has ended and was not reaped; None if this system does not tell."""
    used, own = (ctypes.c_long * _LONGS_OF_RUSAGE)(), (ctypes.c_long * _LONGS_OF_RUSAGE)()
    flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
    if not _WAITID or _libc.syscall(_WAITID, int(os.P_PID), pid, ctypes.create_string_buffer(_ROOMY), flags, used) != 0:
        return None
    _libc.getrusage(_RUSAGE_SELF, own)
    user, user_us, system, system_us, memory = used[:5]
    # A new process begins with our memory, and so does its maximum.
    return Used(
        user + system + (user_us + system_us) / 1e6,
        memory * 1024 if memory > own[4] else 0,
        used[11] * _BLOCK,
        used[12] * _BLOCK,
    )


def reap(pid: int) -> int:
    """The wait status of an ended process; its pid may be reused from here on."""
    status = ctypes.c_int()
    if _libc.waitpid(pid, ctypes.byref(status), os.WNOHANG) != pid:
        raise ChildProcessError(f"process {pid} was reaped elsewhere")
    return status.value


def has_ended(pid: int) -> bool:
    """Whether a process that was not reaped has ended."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def send_signal(pid: int, number: int) -> bool:
    """Signal a process if it exists, or with -PID its group; False if that, or all of it, is another user's.

    What is stopped is continued, since it could not act on the signal.
    """
    try:
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def _list_of(thread: int) -> int:
    """Open the list of the children of a thread of this process; below 0 if the kernel has none."""
    return int(_libc.open(b"/proc/self/task/%d/children" % thread, os.O_RDONLY | os.O_CLOEXEC))


def _has_child(thread: int) -> bool:
    """Whether a thread of this process has one; False if that is unknown."""
    fd = _list_of(thread)
    size = int(_libc.read(fd, ctypes.create_string_buffer(1), 1))
    _libc.close(fd)
    return size > 0


class Orphans:
    """The orphans of this process, where other threads than the main one start programs.

    The kernel gives orphans to the main thread, and lists the children of each thread in a file.
    """

    def __init__(self) -> None:
        self._list = _list_of(os.getpid())

    def alive(self) -> bool | None:
        """Reap those that have ended; whether others are alive, or None if that is unknown.

        The last of several in the list may be cut off; it is the first one soon.
        """
        if self._list < 0:
            return None
        while pids := os.pread(self._list, _PAGE, 0).split():
            if are_alive(map(int, pids[:-1] or pids)):
                return True
        return False


def are_alive(orphans: Iterable[int]) -> bool:
    """Reap those of these children that have ended; whether others are alive."""
    return 0 in [_libc.waitpid(pid, None, os.WNOHANG) for pid in orphans]


# Tags are numbers for processes that all their descendants inherit and that cannot be lost by accident. An environment
# can be cleared, a session left, a descriptor closed; but hardly anything sets the limit on the bytes in POSIX message
# queues. A tag is that limit, lowered by a few bytes of its 800 kB; 0 stands for no tag. A scheduler inside a job
# lowers it further, so what it reads may be another's number: the mark in the environment comes first. Both are read in
# `leftovers`.
_limits = (ctypes.c_uint64 * 2)()  # the soft one and the hard one; guarded by `Starter._tagging`
_libc.prlimit(0, _RLIMIT_MSGQUEUE, None, _limits)
UNTAGGED = min(_limits[0], _INSTEAD_OF_UNLIMITED)
# With fewer tags, attempts that run at the same time could have the same. To set what is there tells if it may be set.
HAS_TAGS = UNTAGGED >= TAGS and _libc.prlimit(0, _RLIMIT_MSGQUEUE, _limits, None) == 0


def tag_of(number: int) -> int:
    """The tag for a number; tags repeat after a long time. It is 0 if this system has none."""
    return number % (TAGS - 1) + 1 if HAS_TAGS else 0
