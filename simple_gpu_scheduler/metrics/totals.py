"""What journals tell of jobs that ended, as totals over all runs, which only grow while an exporter runs.

It is given records, and does not know where they come from. Pure.
"""

from simple_gpu_scheduler.base.jobs import Fate, outcome_of
from simple_gpu_scheduler.base.values import Any, Callable, Iterable, Mapping, NamedTuple, get_args
from simple_gpu_scheduler.journal.fields import is_sound
from simple_gpu_scheduler.journal.read import Record

from . import MetricSample

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_BOUNDS = (1.0, 10.0, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, _HOUR, 4 * _HOUR, 12 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY)


def word(text: str) -> str:
    """An outcome or a state as the value of a label."""
    return text.replace(" ", "_")


OUTCOMES = tuple([word(fate) for fate in get_args(Fate)])


class Buckets:
    """A histogram of seconds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """One more; a clock that was set back makes no time negative."""
        value = max(0.0, value)
        self._counts[next((at for at, bound in enumerate(_BOUNDS) if value <= bound), len(_BOUNDS))] += 1
        self._sum += value

    def samples(self) -> list[MetricSample]:
        """Its series."""
        total, found = 0, []
        for bound, count in zip([*map(str, _BOUNDS), "+Inf"], self._counts, strict=True):
            total += count
            found.append(MetricSample({"le": bound}, total, "_bucket"))
        return [*found, MetricSample({}, self._sum, "_sum"), MetricSample({}, total, "_count")]


class JobTotals:
    """Of all runs together."""

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.waits = Buckets()
        self.runtimes = Buckets()
        self.gpu_seconds = self.energy = self.idle = 0.0


class Running(NamedTuple):
    """An attempt that has started and has no end yet."""

    attempt: int
    gpus: tuple[str, ...]
    at: float


class RunFold:
    """The records of one run, in order: each is added to the totals once. It remembers no job that has ended."""

    def __init__(self, totals: JobTotals) -> None:
        self._totals = totals
        self._read_at: dict[int, float] = {}  # of jobs that never started
        self._exited: set[tuple[int, int]] = set()  # counted when the keeper saw the end
        self._texts: dict[int, tuple[str, str]] = {}
        self._survivors: set[int] = set()  # the jobs that ran on when their scheduler died
        self.run = ""
        self.began_at = 0.0
        self.running: dict[int, Running] = {}
        self.aside: set[str] = set()
        self._on: Mapping[str, Callable[[Record], object]] = {
            "run began": self._began,
            "job read": self._read,
            "line refused": lambda _record: self._count("not started"),
            "job started": self._started,
            "job ended": self._ended,
            "job exited": self._exited_alone,
            "job dropped": self._dropped,
            "job requeued": lambda record: self._forget(record["job"]),
            "keeper alone": lambda record: self._survivors.update(each[0] for each in record["running"]),
            "attempt measured": self._measured,
            "gpu set aside": lambda record: self.aside.add(str(record["gpu"])),
            "gpu returned": lambda record: self.aside.discard(str(record["gpu"])),
        }

    def feed(self, records: Iterable[Record]) -> None:
        """More records. What is not as it should be is skipped."""
        for record in records:
            take = self._on.get(record["event"])
            if take is not None and is_sound(record):
                try:
                    take(record)
                except KeyError:  # a field is missing
                    continue

    def texts(self, job: int) -> tuple[str, str]:
        """The name and the label of a job that has not ended; empty if it has none."""
        return self._texts.get(job, ("", ""))

    def _began(self, record: Record) -> None:
        self.run = record["run"]
        self.began_at = self.began_at or record["at"]
        self.running = {job: each for job, each in self.running.items() if job in self._survivors}
        self._survivors.clear()
        self.aside.clear()

    def _read(self, record: Record) -> None:
        self._read_at[record["job"]] = record["at"]
        if record.get("name") or record.get("label"):
            self._texts[record["job"]] = (record.get("name", ""), record.get("label", ""))

    def _started(self, record: Record) -> None:
        job, at = record["job"], record["at"]
        read_at = self._read_at.pop(job, None)
        if read_at is not None:
            self._totals.waits.add(at - read_at)
        self.running[job] = Running(record["attempt"], tuple(record["gpus"]), at)

    def _ended(self, record: Record) -> None:
        job, outcome = record["job"], record["outcome"]
        was = self._forget(job)
        if (job, record["attempt"]) in self._exited:
            self._exited.discard((job, record["attempt"]))
        elif not record.get("interrupted"):
            if outcome != "not started":
                self._ran(record["runtime"], was)
            if record["final"]:
                self._count("cancelled" if record.get("cancelled") and outcome != "succeeded" else outcome)
        if outcome == "succeeded":  # any other may run again
            self._texts.pop(job, None)

    def _exited_alone(self, record: Record) -> None:
        """Its scheduler was killed, so this may be the only record of its end."""
        job = record["job"]
        was = self._forget(job)
        if was:
            self._ran(record["at"] - was.at, was)
        self._count(outcome_of(record["status"]).kind)
        self._exited.add((job, record["attempt"]))

    def _dropped(self, record: Record) -> None:
        self._read_at.pop(record["job"], None)
        self._count("cancelled" if record.get("cancelled") else "not started")

    def _forget(self, job: int) -> Running | None:
        return self.running.pop(job, None)

    def _ran(self, seconds: float, was: Running | None) -> None:
        self._totals.runtimes.add(seconds)
        self._totals.gpu_seconds += max(0.0, seconds) * len(was.gpus if was else ())

    def _count(self, outcome: str) -> None:
        self._totals.outcomes[word(outcome)] += 1

    def _measured(self, record: Record) -> None:
        for use in record.get("gpus", ()):
            self._totals.energy += figure(use.get("energy")) or 0.0
            self._totals.idle += figure(use.get("idle")) or 0.0


def figure(value: Any) -> float | None:
    """A number that another process wrote; None if it is none."""
    return value if type(value) in (int, float) else None
