"""The state of one run, owned by the loop's thread. The functions over it are in the files beside this one.

The ledger knows what became of each job, and whether the run is paused or stopping; the scheduler knows which jobs
wait, and why.
"""

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.gpu_waits import Waiting
from simple_gpu_scheduler.base.jobs import Attempt, Ending, Job, Key, Patience
from simple_gpu_scheduler.base.values import Any, Callable, NamedTuple
from simple_gpu_scheduler.engines.protocol import NEVER, ForEngine, World
from simple_gpu_scheduler.events import Noticed
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.gpus.pool import Demand
from simple_gpu_scheduler.inputs.reader import Batch, EndOfInput, FileRead
from simple_gpu_scheduler.remote.server import Asked
from simple_gpu_scheduler.run.options import FailureOptions
from simple_gpu_scheduler.scheduling.estimates import PastLengths
from simple_gpu_scheduler.scheduling.quarantine import Quarantine
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.start_limit import StartLimit
from simple_gpu_scheduler.system.signals import Signalled


class RunRules(NamedTuple):
    """`reads_all`: the whole input is read first, since the order depends on it.

    `watches`: jobs that may not stall are watched, as they run. `log_of` is the log file of a job that starts now;
    empty if it has none. All that it prints goes there only if the run `sees_output`.
    """

    failures: FailureOptions = FailureOptions()
    reads_all: bool = False
    run_id: bytes = b""
    watches: bool = True
    sees_output: bool = True
    log_of: Callable[[Job], str] = lambda _job: ""


class EarlierRuns(NamedTuple):
    """What earlier runs tell: how to ask for it, with or without peaks, so that it comes as a message.

    `has_lengths`: those were read before. `unmeasured` says why this run does not learn how much memory jobs need; None
    if nobody need know.
    """

    load: Callable[[bool], object] = lambda _with_peaks: None
    has_lengths: bool = True
    unmeasured: str | None = ""


class UnderWay(NamedTuple):
    """An attempt that was started.

    It began at `began` by the loop's clock and at `began_at` by the wall clock, or waits in a cluster's queue. `ending`
    is why we end it, `why` in words; `ended` is when its main process ended, if processes that it left behind are still
    being ended. `warned` is when it was last warned of, since it seems stalled, and why.
    """

    attempt: Attempt
    began: float | None
    began_at: float
    ending: Ending = ""
    ended: float | None = None
    why: str = ""
    warned: tuple[float, str] | None = None

    def runtime(self, now: float) -> float:
        """How long its main process has been running, or ran."""
        return 0.0 if self.began is None else max(0.0, (self.ended or now) - self.began)


class Watched(NamedTuple):
    """What is known of an attempt that may not stall: which of these it has been told for, and what is being told.

    Its log was like `seen` when last looked at, and has not changed since `quiet_since`; None if it shows nothing.
    """

    stall: Patience | None
    idle: Patience | None
    since: float
    log: str
    seen: tuple[int, int]
    quiet_since: float | None
    told: frozenset[str] = frozenset()
    found: tuple[tuple[str, bool], ...] = ()  # reasons, and whether it is to end; until it is diagnosed


class State:
    """The state of one run."""

    def __init__(
        self,
        rules: RunRules,
        scheduler: Scheduler,
        world: World,
        publisher: Publisher,
        stop_reading: Callable[[], bool] = lambda: True,
        history: EarlierRuns = EarlierRuns(),  # noqa: B008 - a value, which nobody changes
    ) -> None:
        """`stop_reading` closes inputs that may continue, and returns whether something had arrived by then."""
        self.rules = rules
        self.scheduler = scheduler
        self.engine, self.inbox, self.clock, self.read_more = world
        self.publish: Callable[[Any], None] = publisher.publish  # hands an event to the ledger and all sinks
        self.ledger = publisher.ledger
        self.stop_reading = stop_reading
        self.history = history
        self.asked_lengths = history.has_lengths
        self.asked_peaks = False
        self.peaks_due = float("-inf")  # until when the peaks of earlier runs are awaited
        self.has_told_of_peaks = history.unmeasured is None  # that jobs run alone since nobody knows what they need
        self.has_told_of_scouts = False  # that jobs wait for those that run alone
        self.told_kinds: set[str] = set()  # the templates of which it was said what they are given
        # The attempts under way, in the order in which they were started, and the next deadline of those that have one:
        # the timeout or, once they are being ended, the end of the grace period.
        self.attempts: dict[Key, UnderWay] = {}
        self.due: dict[Key, float] = {}
        self.watched: dict[Key, Watched] = {}
        self.watch_at = NEVER  # when to look at these
        self.has_told_of_blindness = False
        self.quarantine = Quarantine(rules.failures.quarantine)
        self.start_limit = StartLimit()
        self.waiting = Waiting()
        self.wake = NEVER  # when the engine wants to be called again
        self.signal, self.signalled_at = 0, float("-inf")  # the signal that stopped the run
        self.ends_running = False  # whether running jobs were asked to end
        self.has_told_of_choice = False  # of a job that sets CUDA_VISIBLE_DEVICES itself
        self.reader_waits = self.reader_has_ended = self.may_read_more = False

    @property
    def starts(self) -> bool:
        """Whether more jobs may start."""
        return not (self.ledger.is_stopping or self.ledger.is_paused)

    @property
    def demand(self) -> Demand:
        """What the waiting jobs need."""
        if not (self.starts and self.start_limit.allows(len(self.attempts), self.clock.now())):
            return Demand(without=self.quarantine.aside)
        return Demand(*self.scheduler.wants, self.quarantine.aside)

    def runtimes(self) -> list[tuple[Attempt, float]]:
        """The running attempts, and for how long they have been running."""
        now = self.clock.now()
        return [(run.attempt, run.runtime(now)) for run in self.attempts.values()]

    def complain(self, what: str) -> None:
        """Report that something other than a job went wrong, which the exit code will show."""
        self.publish(Noticed(what, is_failure=True))


Message = Batch | FileRead | EndOfInput | ForEngine | Broken | Noticed | Signalled | Asked | PastLengths
