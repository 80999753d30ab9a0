"""How a run is stopped: by signals, by somebody who asks, by too many failures. It acts for the loop, in its thread."""

import signal

from simple_gpu_scheduler.events import Noticed, StopAsked
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.resume.adopted import Adopted
from simple_gpu_scheduler.scheduling.halt import Halt
from simple_gpu_scheduler.scheduling.scheduler import Scheduler

from .attempts import Attempts

# The command `timeout` sends TERM twice, to us and to our process group, and means one.
_AT_ONCE = 0.5


class Stopping:
    """Remembers what was asked. `signal` is the one that stopped the run, or 0."""

    def __init__(
        self,
        scheduler: Scheduler,
        attempts: Attempts,
        adopted: Adopted,
        publisher: Publisher,
        halt: Halt | None,
    ) -> None:
        self._scheduler = scheduler
        self._attempts = attempts
        self._adopted = adopted
        self._publisher = publisher
        self._ledger = publisher.ledger
        self._halt = halt
        self._told_to_end = False
        self.signal, self._at = 0, float("-inf")  # and when that came

    def signalled(self, number: int, now: float) -> None:
        """A signal that asks for it has come, or the terminal is gone, which does not."""
        if number == signal.SIGHUP:
            self._publisher.publish(Noticed("SIGHUP: the terminal is gone, the run goes on"))
            return
        if number == signal.SIGTERM == self.signal and now - self._at < _AT_ONCE:
            return
        self.signal, self._at = number, now
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        self.stop(name, end_running=self._ledger.is_stopping or number != signal.SIGINT)

    def stop(self, why: str, *, end_running: bool) -> None:
        """Start nothing more; with `end_running` also end what runs, and by force when that has been said before."""
        self._scheduler.stop()
        force = end_running and self._told_to_end
        self._told_to_end = self._told_to_end or end_running
        self._publisher.publish(StopAsked(why, end_running, force, len(self._attempts) + len(self._adopted)))
        if end_running:
            self._attempts.stop(force=force)
            self._adopted.stop(force=force)

    def check_failures(self) -> None:
        """Stop when so many jobs have failed that the rest is not worth it."""
        ledger = self._ledger
        failed, is_left = ledger.failed, ledger.running or ledger.waiting or not ledger.all_read
        if not self._halt or ledger.is_stopping or not is_left or not failed:
            return
        if self._halt.is_reached(failed, ledger.counts().total, all_read=ledger.all_read):
            self.stop(f"--halt: {failed} job{'' if failed == 1 else 's'} did not succeed", end_running=self._halt.now)
