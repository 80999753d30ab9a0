"""What is left to do of a run started by an earlier scheduler, and which input lines it already had. Pure."""

from collections import Counter, deque

from simple_gpu_scheduler.base.jobs import Attempt, Fate, Job, Key
from simple_gpu_scheduler.base.values import Any, Collection, Iterable, Mapping, NamedTuple
from simple_gpu_scheduler.events import ReadMark, RunResumed
from simple_gpu_scheduler.jobfile.parse import LineParser, Refusal
from simple_gpu_scheduler.journal.run_state import UNFINISHED, JobState, RunState
from simple_gpu_scheduler.keeper.survivors import Survivor
from simple_gpu_scheduler.scheduling import NextAttempt


class Resumption(NamedTuple):
    """What the new scheduler needs to know of the run before it reads its first line."""

    waiting: tuple[tuple[Job, NextAttempt], ...] = ()
    survivors: tuple[Survivor, ...] = ()
    ended: tuple[tuple[Job, Fate, NextAttempt], ...] = ()
    refused: tuple[int, ...] = ()
    lengths: tuple[float, ...] = ()  # of the jobs that succeeded
    retries_failed: bool = False

    def as_event(self, runtimes: Iterable[tuple[Attempt, float]]) -> RunResumed:
        """The same as an event, with the runtimes of running attempts."""
        logs = {each.attempt.key: each.log for each in self.survivors}
        return RunResumed(
            [(job, fate) for job, fate, _ in self.ended],
            self.refused,
            [(attempt, runtime, logs[attempt.key]) for attempt, runtime in runtimes],
            [job for job, _ in self.waiting],
            self.lengths,
        )

    def sentence(self, run: str) -> str:
        """A summary for the user."""
        counts: Counter[str] = Counter(
            fate if fate in ("succeeded", "cancelled") else "did not succeed" for _, fate, _ in self.ended
        )
        counts.update(
            "did not succeed" if each.status else "succeeded" for each in self.survivors if each.status is not None
        )
        failed = counts["did not succeed"]
        parts = [f"{counts['succeeded']} succeeded"]
        if failed:
            parts.append(f"{failed} did not" + ("" if self.retries_failed else " (to retry: --resume-failed)"))
        if self.refused:
            lines = "1 line was" if len(self.refused) == 1 else f"{len(self.refused)} lines were"
            parts.append(f"{lines} refused (once corrected: --resume FILE)")
        if counts["cancelled"]:
            parts.append(f"{counts['cancelled']} cancelled")
        running = [str(each.attempt.job.number) for each in self.survivors if each.status is None]
        if running:
            parts.append(f"{len(running)} still running (job{'s' * (len(running) > 1)} {', '.join(running[:10])})")
        return f"resuming run {run}: {', '.join(parts)}, {len(self.waiting)} waiting"


def what_is_left(state: RunState, alive: Mapping[Key, int], *, failed_too: bool) -> Resumption:
    """`alive` are the attempts that are still running, and their pids; 0 if unknown."""
    waiting: list[tuple[Job, NextAttempt]] = []
    survivors: list[Survivor] = []
    ended: list[tuple[Job, Fate, NextAttempt]] = []
    for number in sorted(state.jobs):
        each = state.jobs[number]
        job, key = each.job, (number, each.attempts)
        attempt = Attempt(job, each.attempts, each.gpus, ())
        if each.exited is not None:
            # Its end has yet to be published. If it failed, it is retried like those that failed before.
            excused = each.attempts if failed_too else each.interrupted
            survivors.append(Survivor(attempt, 0, each.started_at, excused, each.exited, each.log, each.ended_at))
        elif each.state == "running" and key in alive:
            survivors.append(Survivor(attempt, alive[key], each.started_at, each.interrupted, None, each.log))
        elif each.state in UNFINISHED or (failed_too and each.state in ("failed", "not started")):
            waiting.append((job, _next_attempt(each, failed_too=failed_too)))
        else:
            ended.append((job, _fate(each), NextAttempt(each.attempts + 1, each.attempts, each.state == "failed")))
    lengths = tuple(each.length for each in state.jobs.values() if each.exited is None and each.state == "succeeded")
    return Resumption(tuple(waiting), tuple(survivors), tuple(ended), tuple(state.refused), lengths, failed_too)


def _next_attempt(each: JobState, *, failed_too: bool) -> NextAttempt:
    """Interrupted attempts do not count; and retrying failed jobs starts afresh."""
    interrupted = each.interrupted + (each.state == "running")
    fresh = failed_too and each.state in ("failed", "not started")
    return NextAttempt(each.attempts + 1, each.attempts if fresh else interrupted, fresh and each.state == "failed")


def _fate(each: JobState) -> Fate:
    if each.state == "failed":
        return each.outcome.kind if each.outcome else "failed"
    return "succeeded" if each.state == "succeeded" else "cancelled" if each.state == "cancelled" else "not started"


class Matcher:
    """Passes on the jobs of an input that the run did not have, by command and options, regardless of their line.

    A job that occurs twice must have occurred twice before. In an input with a known position, only what was read after
    that position is compared.
    """

    def __init__(self, parser: LineParser, state: RunState) -> None:
        names = {each.job.name: number for number, each in state.jobs.items() if each.job.name}
        self._parser = parser
        self._state = state
        self._next = max((*state.jobs, *state.refused), default=0) + 1
        parser.resume(self._next - 1, names)
        self._all = _Known(state, None)
        self._known = self._all
        self._ours: dict[int, int] = {}  # the run's numbers of the jobs that the parser has numbered

    @property
    def defaults(self) -> dict[str, Any]:
        """See `LineParser`."""
        return self._parser.defaults

    def begin(self, name: str, mark: ReadMark | None = None, *, all_new: bool = False) -> None:
        """See `LineParser`."""
        jobs = self._state.jobs
        since = [number for number in self._state.since_mark if jobs[number].job.place.input == name]
        self._known = _Known(self._state, [] if all_new else since) if mark or all_new else self._all
        self._parser.begin(name, mark)

    def parse(self, line: int, text: bytes, size: int) -> Job | Refusal | None:
        """The job, with its number in the run, or None if the run has it already."""
        found = self._parser.parse(line, text, size)
        if found is None:
            return None
        if isinstance(found, Job):
            after = tuple(self._ours.get(number, number) for number in found.after)
            found = found._replace(after=after)
        number = self._known.take(found)
        self._ours[found.number] = number or self._next
        if number:
            return None
        self._next += 1
        return found._replace(number=self._next - 1)


class _Known:
    """The jobs and refused lines of a run that were not matched yet; with `numbers` only those."""

    def __init__(self, state: RunState, numbers: Collection[int] | None) -> None:
        self._state = state
        self._numbers = numbers
        self._by_content: dict[object, deque[int]] | None = None

    def take(self, found: Job | Refusal) -> int:
        """The number of a matching one, which is then used up; 0 if there is none."""
        if self._by_content is None:  # computed when needed: for a long run it takes a while
            self._by_content = self._index()
        numbers = self._by_content.get(_content(found))
        return numbers.popleft() if numbers else 0

    def _index(self) -> dict[object, deque[int]]:
        index: dict[object, deque[int]] = {}
        jobs = self._state.jobs
        numbers: Iterable[int] = jobs if self._numbers is None else self._numbers
        for number in numbers:
            index.setdefault(_content(jobs[number].job), deque()).append(number)
        if self._numbers is None:
            for number, record in self._state.refused.items():
                index.setdefault(record["problem"], deque()).append(number)
        return index


def _content(found: Job | Refusal) -> object:
    if isinstance(found, Refusal):
        return found.problem
    return found[1:2] + found[3:]  # all but its number and its place
