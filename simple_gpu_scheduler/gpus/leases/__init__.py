"""Leases: the right to use a GPU, among all schedulers of all users of a machine, as locks on shared files.

The kernel releases the lock of a dead holder. These files know GPUs only by the names of their lease files, and not
what a lease is for.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from simple_gpu_scheduler.base.errors import Broken, UserError


class LeaseError(UserError):
    """The lease files cannot be used; nothing was taken."""


class LeaseCame(NamedTuple):
    """A lease that we waited for is ours."""

    gpu: str


Put = Callable[[LeaseCame | Broken], None]


class Holder(NamedTuple):
    """The holder of a lease, in words, and its identity."""

    sentence: str
    name: str


class Lease(Protocol):
    """The lease of one GPU, held or not. Used from one thread, but any thread may sign it.

    A job inherits the `descriptor`, so that the GPU stays leased as long as the job runs.
    """

    @property
    def descriptor(self) -> int | None:
        """The open file that is locked."""

    def take(self, *, past_the_line: bool = False) -> bool:
        """Take it if it is free and no other scheduler waits for it, or past those that wait."""

    def wait_in_line(self) -> None:
        """Put a `LeaseCame` on the inbox as soon as it is ours. Call it once for each."""

    def sign(self, marks: Sequence[bytes], pid: int) -> None:
        """Record the holder for others: the attempts, and a process."""

    def is_wanted(self) -> bool:
        """Whether another scheduler waits for it while it is ours."""

    def release(self) -> None:
        """Give it back, even if other processes inherited it."""

    def holder(self) -> Holder | None:
        """Its holder. Call this only while it is not ours."""

    def close(self) -> None:
        """Give it back for good, or stop waiting for it."""


class Hold(NamedTuple):
    """The leases of an attempt, each with the marks of all attempts that it is held for now."""

    leases: Sequence[tuple[Lease, Sequence[bytes]]] = ()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the attempt's process must inherit."""
        return tuple([fd for lease, _ in self.leases if (fd := lease.descriptor) is not None])

    def sign(self, pid: int) -> None:
        """Record the process in each."""
        for lease, marks in self.leases:
            lease.sign(marks, pid)
