"""Messages between the scheduler and its keeper: a few byte fields and open files. It does not know what they mean."""

import _socket
import errno
import os
import sys
from collections.abc import Sequence

from simple_gpu_scheduler.base.values import NamedTuple

# A command may have 131,071 bytes, plus the variables of a job.
_LONGEST = 512 * 1024
_MOST_FILES = 253  # the kernel allows no more
_INT = 4
_SHORT = 256


class Socket(_socket.socket):
    """One end of a connection. It closes once the program has no reference to it, which the other end notices."""

    def __del__(self) -> None:
        """Close it, without the warning that Python's own gives."""
        self.close()


class Message(NamedTuple):
    """Fields without NULs, and descriptors that now belong to the receiver."""

    fields: list[bytes]
    files: list[int]


def pair() -> tuple[Socket, Socket]:
    """Two connected ends that keep messages apart."""
    one, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    ends = Socket(fileno=one.detach()), Socket(fileno=other.detach())
    for end in ends:
        end.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, _LONGEST)
    return ends


def send(socket: Socket, *fields: bytes, files: Sequence[int] = ()) -> None:
    """Send a message; an OSError says that the other side is gone."""
    data = b"\0".join(fields)
    if files:
        rights = b"".join(fd.to_bytes(_INT, sys.byteorder) for fd in files)
        socket.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)], _socket.MSG_NOSIGNAL)
    else:
        socket.send(data, _socket.MSG_NOSIGNAL)


def room() -> bytearray:
    """A receive buffer for one thread: a new one for each message would cost more than everything else."""
    return bytearray(_LONGEST)


def receive_short(socket: Socket) -> list[bytes] | None:
    """The fields of a short message without files; None if the other side is gone."""
    try:
        data = socket.recv(_SHORT)
    except ConnectionError:
        return None
    return data.split(b"\0") if data else None


def receive(socket: Socket, into: bytearray | None = None) -> Message | None:
    """The next message; None if the other side is gone."""
    into = room() if into is None else into
    try:
        size, ancillary, flags, _ = socket.recvmsg_into(
            [into], _socket.CMSG_SPACE(_MOST_FILES * _INT), _socket.MSG_CMSG_CLOEXEC
        )
    except ConnectionError:
        return None
    if not size:
        return None
    data = bytes(memoryview(into)[:size])
    files = [
        int.from_bytes(rights[at : at + _INT], sys.byteorder)
        for _, _, rights in ancillary
        for at in range(0, len(rights) - _INT + 1, _INT)
    ]
    if flags & _socket.MSG_CTRUNC:  # out of descriptors: without its leases a job must not start
        close_all(files)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return Message(data.split(b"\0"), files)


def close_all(files: Sequence[int]) -> None:
    """Close descriptors that came with a message."""
    for fd in files:
        os.close(fd)
