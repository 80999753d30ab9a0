"""How bytes and open files travel between two processes of this machine. It does not know what they mean."""

import _socket
import os
import sys

from simple_gpu_scheduler.base.values import Callable, NamedTuple, Sequence, TypeVar

T = TypeVar("T")

# A command may have 131,071 bytes, plus the variables of a job.
_LONGEST = 512 * 1024
_SHORT = 64 * 1024
_INT = 4
_ROOM_FOR_FILES = _socket.CMSG_SPACE(253 * _INT)  # the kernel allows no more


class Socket(_socket.socket):
    """One end of a connection. It closes once the program has no reference to it, which the other end notices."""

    def __del__(self) -> None:
        """Close it, without the warning that Python's own gives."""
        self.close()


class Received(NamedTuple):
    """What came, and descriptors that now belong to the receiver; none if there was no room for all of them."""

    data: bytes
    files: list[int] | None


def pair() -> tuple[Socket, Socket]:
    """Two connected ends that keep messages apart."""
    one, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    ends = Socket(fileno=one.detach()), Socket(fileno=other.detach())
    for end in ends:
        end.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, _LONGEST)
    return ends


def send(socket: Socket, data: bytes, files: Sequence[int] = (), *, wait: bool = True) -> None:
    """Send it; an OSError says that the other side is gone. Without `wait`, a BlockingIOError that there is no room."""
    flags = _socket.MSG_NOSIGNAL | (0 if wait else _socket.MSG_DONTWAIT)
    if files:
        rights = b"".join([fd.to_bytes(_INT, sys.byteorder) for fd in files])
        socket.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)], flags)
    else:
        socket.send(data, flags)


def room() -> bytearray:
    """A receive buffer for one thread: a new one for each message would cost more than everything else."""
    return bytearray(_LONGEST)


def receive(socket: Socket, into: bytearray | None = None) -> Received | None:
    """What comes next; None if the other side is gone."""
    into = room() if into is None else into
    size, ancillary, flags, _ = _to_the_end(
        lambda: socket.recvmsg_into([into], _ROOM_FOR_FILES, _socket.MSG_CMSG_CLOEXEC)
    )
    if not size:
        return None
    data = bytes(memoryview(into)[:size])
    files = [fd for _, _, rights in ancillary for fd in memoryview(rights).cast("i")]
    if flags & _socket.MSG_CTRUNC:  # out of descriptors
        close_all(files)
        return Received(data, None)
    return Received(data, files)


def receive_short(socket: Socket) -> bytes:
    """What came, if it is short and without files; empty if the other side is gone."""
    return _to_the_end(lambda: socket.recv(_SHORT))


def _to_the_end(read: Callable[[], T]) -> T:
    """Read also what the other side said last: if it is gone and had not read all, the kernel says only that first."""
    try:
        return read()
    except ConnectionError:
        return read()


def close_all(files: Sequence[int]) -> None:
    """Close descriptors that came with a message."""
    for fd in files:
        os.close(fd)
