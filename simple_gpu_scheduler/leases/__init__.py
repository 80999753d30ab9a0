"""Leases: the right to use a GPU, among all schedulers of all users of a machine, as locks on files that they share.

The kernel takes a dead holder's lock away. These files know GPUs by the names of their lease files and nothing else of
them; what a lease is wanted for is others' business.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from simple_gpu_scheduler.errors import Broken, UserError


class LeaseError(UserError):
    """The lease files cannot be used; nothing was taken."""


class LeaseCame(NamedTuple):
    """A lease that was waited for in line is ours."""

    gpu: str


class Hold(NamedTuple):
    """What an attempt has of its leases: the descriptors to inherit, and where to write down its pid."""

    descriptors: tuple[int, ...] = ()
    note: Callable[[int], None] = lambda _pid: None


class Holder(NamedTuple):
    """Who holds a lease, in words, and what tells him from the next."""

    sentence: str
    name: str


class Lease(Protocol):
    """The lease of one GPU, held or not. It is used from one thread."""

    def take(self, *, past_the_line: bool = False) -> bool:
        """Take it if it is free and nobody waits in line for it, or though somebody does."""

    def wait_in_line(self) -> None:
        """Have a `LeaseCame` put on the inbox as soon as it is ours. To be called once for each."""

    def sign(self, marks: Sequence[bytes], pid: int = 0) -> int | None:
        """Write down for others who holds it; the descriptor that a job inherits, so that it is held while he lives."""

    def release(self) -> None:
        """Give it back, whoever has inherited it."""

    def holder(self) -> Holder | None:
        """Who holds it. To be asked only while it is not ours."""


class NoLease:
    """The lease of a GPU that nothing is really run on."""

    def take(self, *, past_the_line: bool = False) -> bool:  # noqa: ARG002 - the protocol's name
        """It is taken."""
        return True

    def wait_in_line(self) -> None:
        """Nobody has to."""

    def sign(self, marks: Sequence[bytes], pid: int = 0) -> int | None:
        """There is nobody to tell, and nothing to inherit."""

    def release(self) -> None:
        """There is nothing to give back."""

    def holder(self) -> Holder | None:
        """Nobody."""


Put = Callable[[LeaseCame | Broken], None]
