"""Leases: the right to use a GPU, among all schedulers of all users of a machine, as locks on shared files.

The kernel releases the lock of a dead holder. These files know GPUs only by the names of their lease files, and not
what a lease is for.
"""

from simple_gpu_scheduler.base.errors import Broken, UserError
from simple_gpu_scheduler.base.values import Callable, NamedTuple, Protocol, Sequence


class LeaseError(UserError):
    """The lease files cannot be used; nothing was taken."""


class LeaseFileError(LeaseError):
    """The files of this one lease cannot be used, whatever is true of the others."""


class LeaseCame(NamedTuple):
    """A lease that we waited for is ours."""

    gpu: str


Put = Callable[[LeaseCame | Broken], object]


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

    def open(self) -> None:
        """Open its files if they are not open yet; `take` does so too. A `LeaseError` says why that cannot be done."""

    def take(self, *, past_the_line: bool = False) -> bool:
        """Take it if it is free and no other scheduler waits for it, or past those that wait."""

    def wait_in_line(self) -> None:
        """Put a `LeaseCame` on the inbox as soon as it is ours. Call it once for each."""

    def sign(self, marks: Sequence[bytes], pid: int, job: int = 0, name: str = "") -> None:
        """Record the holder for others: the attempts, a process and, if that is a job with a name, which."""

    def sign_first(self, marks: Sequence[bytes], pid: int, word: bytes, job: int, name: str) -> tuple[bytes, bytes]:
        """Sign it until another process does; its file's name, and what that writes there, with its pid for `word`."""

    def is_wanted(self) -> bool:
        """Whether another scheduler waits for it while it is ours."""

    def release(self) -> None:
        """Give it back, even if other processes inherited it."""

    def holder(self) -> Holder | None:
        """Its holder. Call this only while it is not ours."""

    def signed_by(self) -> int:
        """The pid of its holder or, if it has none, of its last one; 0 if unknown."""

    def close(self) -> None:
        """Give it back for good, or stop waiting for it."""


class Hold(NamedTuple):
    """The leases of an attempt, each with the marks of all attempts that it is held for now."""

    leases: Sequence[tuple[Lease, Sequence[bytes]]] = ()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the attempt's process must inherit."""
        return tuple([fd for lease, _ in self.leases if (fd := lease.descriptor) is not None])

    def sign_first(self, pid: int, word: bytes, job: int, name: str) -> tuple[bytes, ...]:
        """Sign each until the attempt's process does; for each of the descriptors, the two that `Lease` gives."""
        leased = [(lease, marks) for lease, marks in self.leases if lease.descriptor is not None]
        return tuple([part for lease, marks in leased for part in lease.sign_first(marks, pid, word, job, name)])

    def sign(self, pid: int, job: int = 0, name: str = "") -> None:
        """Record the process in each, and which job it is if that has a name."""
        for lease, marks in self.leases:
            lease.sign(marks, pid, job, name)
