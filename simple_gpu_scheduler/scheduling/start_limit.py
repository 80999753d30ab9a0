"""How many attempts the system lets run at once, after it refused to start one, and when to try one more. Pure.

A limit on processes is shared with everything else that its user runs: there may be room again in a moment, or as soon
as one of our own jobs ends.
"""

from simple_gpu_scheduler.base.values import NamedTuple

_NEVER = float("inf")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0
# How long it is tried while nothing of ours runs whose end could help.
_PATIENCE = 60.0
# A line says it once, and again when it happens after this long without it.
_QUIET = 600.0


class StartLimit(NamedTuple):
    """What is known: `most` attempts may run, and more only from `again_at` on.

    `alone_since` is the first refusal in a row while nothing of ours ran. `is_trying`: one more than `most` was started
    and not refused so far.
    """

    most: float = _NEVER
    again_at: float = 0.0
    pause: float = 0.0
    alone_since: float = _NEVER
    is_trying: bool = False
    seen_at: float = -_NEVER

    def allows(self, running: int, now: float) -> bool:
        """Whether one more may be started."""
        return running < self.most or now >= self.again_at

    def next_try(self, running: int, now: float) -> float:
        """When it is allowed though nothing happens; infinity if it is now."""
        return _NEVER if self.allows(running, now) else self.again_at

    def started(self, running: int, now: float) -> "StartLimit":
        """One more was started beside those `running`. Two such tries in a row that are not refused end the matter."""
        if running < self.most:
            return self
        if self.is_trying:
            return StartLimit(seen_at=self.seen_at)
        return self._replace(most=running + 1, again_at=now + self.pause, is_trying=True)

    def refused(self, running: int, now: float) -> "StartLimit":
        """The system refused one more beside those `running`. Several that were started at once count as one."""
        is_next = self.is_trying or now >= self.again_at
        pause = min(max(_FIRST_PAUSE, 2 * self.pause), _LONGEST_PAUSE) if is_next else self.pause
        alone_since = min(self.alone_since, now) if not running else _NEVER
        is_hopeless = now - alone_since >= _PATIENCE
        return StartLimit(running, now if is_hopeless else now + pause, pause, alone_since, seen_at=now)

    def ran(self) -> "StartLimit":
        """An attempt that had been started has ended."""
        return self if self.alone_since == _NEVER else self._replace(alone_since=_NEVER)

    def is_news(self, now: float) -> bool:
        """Whether a refusal now must be reported."""
        return now - self.seen_at >= _QUIET

    def is_hopeless(self, now: float) -> bool:
        """Whether waiting has been in vain for long enough."""
        return now - self.alone_since >= _PATIENCE
