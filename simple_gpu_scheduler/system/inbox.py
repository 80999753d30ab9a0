"""Where a thread waits for messages of others, and for descriptors whose messages it reads itself.

A message that a thread reads and hands over costs two switches of threads more. It does not know what messages mean.
"""

import os
import select
import time

from simple_gpu_scheduler.base.stdlib import Empty, deque
from simple_gpu_scheduler.base.values import Any, Callable

_LONGEST = 1_000_000.0  # seconds that the kernel takes


class SystemInbox:
    """One thread gets messages; any thread may put some, and so may the handler of a signal.

    Before Python 3.13 a `SimpleQueue` waits forever if the timeout passes while it prepares to wait, or while the
    handler of a signal runs.
    """

    def __init__(self) -> None:
        self._messages: deque[Any] = deque()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watched: dict[int, Callable[[int], Any]] = {}
        self._poll = select.poll()
        self._poll.register(self._bell, select.POLLIN)

    def __del__(self) -> None:
        """Close what nothing else has."""
        os.close(self._bell)

    def put(self, message: Any) -> None:
        """Put it, which never waits."""
        self._messages.append(message)
        os.eventfd_write(self._bell, 1)

    def watch(self, fd: int, act: Callable[[int], Any], *, writes: bool = False) -> None:
        """Call `act` with what `poll` says once there is something to read, or if it `writes`, room to write.

        What `act` returns is a message, unless it is None.
        """
        self._watched[fd] = act
        self._poll.register(fd, select.POLLIN | (select.POLLOUT if writes else 0))

    def forget(self, fd: int) -> None:
        """Watch it no longer."""
        del self._watched[fd]
        self._poll.unregister(fd)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next message; `Empty` if none came in time."""
        until = time.monotonic() + (float("inf") if timeout is None else timeout) if block else 0.0
        while not self._messages:
            left = max(0.0, until - time.monotonic())
            if not self._gather(min(left, _LONGEST)) and not left:
                raise Empty
        return self._messages.popleft()

    def _gather(self, timeout: float) -> bool:
        """Wait for something to read; False if there was nothing."""
        ready = self._poll.poll(timeout * 1000)
        for fd, events in ready:
            if fd == self._bell:
                os.eventfd_read(fd)
            elif (message := self._watched[fd](events)) is not None:
                self._messages.append(message)
        return bool(ready)
