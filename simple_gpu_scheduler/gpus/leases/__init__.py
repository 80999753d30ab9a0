"""Leases: the right to use a GPU, among all schedulers of all users of a machine, as locks on files that they share.

The kernel takes a dead holder's lock away. These files know GPUs by the names of their lease files and nothing else of
them; what a lease is wanted for is others' business.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from simple_gpu_scheduler.base.errors import Broken, UserError


class LeaseError(UserError):
    """The lease files cannot be used; nothing was taken."""


class LeaseCame(NamedTuple):
    """A lease that was waited for in line is ours."""

    gpu: str


Put = Callable[[LeaseCame | Broken], None]


class Holder(NamedTuple):
    """Who holds a lease, in words, and what tells him from the next."""

    sentence: str
    name: str


class Lease(Protocol):
    """The lease of one GPU, held or not. It is used from one thread, but any may sign it.

    A job inherits the `descriptor`, so that the GPU stays leased for as long as the job lives.
    """

    @property
    def descriptor(self) -> int | None:
        """The open file that is locked."""

    def take(self, *, past_the_line: bool = False) -> bool:
        """Take it if it is free and nobody waits in line for it, or though somebody does."""

    def wait_in_line(self) -> None:
        """Have a `LeaseCame` put on the inbox as soon as it is ours. To be called once for each."""

    def sign(self, marks: Sequence[bytes], pid: int) -> None:
        """Write down for others who holds it: the attempts, and a process."""

    def is_wanted(self) -> bool:
        """Whether another waits in line for it while it is ours."""

    def release(self) -> None:
        """Give it back, whoever has inherited it."""

    def holder(self) -> Holder | None:
        """Who holds it. To be asked only while it is not ours."""

    def close(self) -> None:
        """Give it back for good, also one that is still waited for."""


class Hold(NamedTuple):
    """What an attempt has of its leases: them, each with the marks of all attempts that it is held for, now."""

    leases: Sequence[tuple[Lease, Sequence[bytes]]] = ()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the attempt's process is to inherit."""
        return tuple([fd for lease, _ in self.leases if (fd := lease.descriptor) is not None])

    def sign(self, pid: int) -> None:
        """Write the process down in each."""
        for lease, marks in self.leases:
            lease.sign(marks, pid)
