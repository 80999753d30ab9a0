"""Records -> what became of each job of a run. Pure.

It does not know whether the scheduler is still running: a job that started and has not ended is `running` here, and the
caller decides what that means.
"""

from simple_gpu_scheduler.base.errors import BAD_INPUT
from simple_gpu_scheduler.base.jobs import Job, Key, Outcome, Place, outcome_of
from simple_gpu_scheduler.base.stdlib import bisect_left
from simple_gpu_scheduler.base.values import Callable, Iterable, Mapping, NamedTuple, get_args
from simple_gpu_scheduler.events.ledger import State, state_after

from . import VERSION
from .fields import is_sound
from .read import Contents, Record, read_records
from .records import read_options

# The states of jobs that `--resume` runs. If their run is active, an interrupted one waits until it is resumed.
UNFINISHED = ("waiting", "running", "interrupted")
# For what is missing in a journal that no scheduler wrote.
_BEGAN: Record = {"host": "", "directory": "", "argv": [], "inputs": []}


def is_refusal(began: Record, ended: Record) -> bool:
    """Whether a run was refused before anything started. One that was resumed still has the jobs it had before."""
    return ended.get("code") == BAD_INPUT and not ended.get("elapsed") and not began.get("is_resumed")


def may_have_no_job(ended: Record) -> bool:
    """Whether each line of a run that has finished may have been wrong, by how it ended."""
    ran = any(ended.get(name) for name in ("succeeded", "failed", "timed_out", "stalled", "left"))
    return ended.get("code") == BAD_INPUT and bool(ended.get("all_read")) and not ran


class JobState:
    """A job and its state. `attempts` counts those that started, `interrupted` those without a result."""

    __slots__ = (
        "attempts",
        "ended_at",
        "exited",
        "gpus",
        "interrupted",
        "job",
        "length",
        "log",
        "outcome",
        "read_at",
        "reason",
        "started_at",
        "state",
    )

    def __init__(self, job: Job, read_at: float) -> None:
        self.job = job
        self.state: State = "waiting"
        self.attempts = self.interrupted = 0
        self.gpus: tuple[str, ...] = ()
        self.outcome: Outcome | None = None
        self.exited: int | None = None  # the wait status that its keeper recorded and no scheduler has acted on
        self.reason = self.log = ""
        self.read_at = read_at
        self.started_at = self.ended_at = self.length = 0.0


class _HeldLines(NamedTuple):
    """What a followed file held by its marks: the jobs in these ranges, and every job after number `after`.

    The jobs after number `marked` came after its last mark, so their lines will be read again. So will the line of the
    job `unfinished`, which had no end.
    """

    ranges: tuple[int, ...] = ()
    after: int = 0
    marked: int = 0
    unfinished: int = 0

    def has(self, number: int) -> bool:
        """Whether it held the line of this job."""
        at = bisect_left(self.ranges, number)
        return number > self.after or at % 2 == 1 or self.ranges[at : at + 1] == (number,)


Digested = tuple[str, int]


class KnownLines(NamedTuple):
    """The (digest, number) pairs of the lines of a followed file: those it held, and those read after its last mark.

    `unfinished` is held too, but without its end. `refused` has the problems of those that were refused.
    """

    held: list[Digested]
    unmarked: list[Digested]
    unfinished: Digested | None = None
    refused: Mapping[int, str] = {}


class RunState:
    """The state of a run by its journal. Feed it the records in order."""

    def __init__(self) -> None:
        self.began: Record = {}  # the newest, if the run was resumed
        self.first_began: Record = {}
        self.argvs: list[list[str]] = []  # what was typed, each time
        self.ended: Record | None = None
        self.jobs: dict[int, JobState] = {}
        self.refused: dict[int, Record] = {}
        self.marks: dict[str, Record] = {}  # how far each growing input was read
        self.since_mark: list[int] = []  # the jobs that were read since the last of these was written
        self._digests: dict[int, str] = {}  # of the lines of followed files, by the number of their job
        self._newest_digested = 0
        self._held: dict[str, _HeldLines] = {}
        self.ended_inputs: set[str] = set()  # the files that were read to their end
        self.survivors: dict[Key, int] = {}  # the attempts that ran when their scheduler died, and their pids
        self.is_keeper_alone = False  # whether the keeper recorded that its scheduler is gone
        self.is_paused = False
        self.waits: list[dict[str, str]] = []  # why jobs waited, by the last record of that
        self.problems: list[str] = []
        self.unknown: set[str] = set()
        self.unreadable = 0
        self.last_at = 0.0
        self._on: dict[str, Callable[[Record], None]] = {
            "run began": self._began,
            "job read": self._read,
            "read up to": self._marked,
            "line refused": self._refused,
            "job started": self._started,
            "job began": self._job_began,
            "job ended": self._ended,
            "job exited": self._exited,
            "keeper alone": self._alone,
            "job dropped": self._dropped,
            "job requeued": self._requeued,
            "paused": lambda _record: setattr(self, "is_paused", True),
            "continued": lambda _record: setattr(self, "is_paused", False),
            "waited": lambda record: setattr(self, "waits", record["waits"]),
            "input ended": lambda record: self.ended_inputs.add(record["path"]),
            "noticed": self._noticed,
            "run ended": lambda record: setattr(self, "ended", record),
            **dict.fromkeys(
                (
                    "stall seen",
                    "attempt measured",
                    "left behind",
                    "stop asked",
                    "neighbour came",
                    "gpu set aside",
                    "gpu returned",
                ),
                lambda _record: None,
            ),
        }

    @property
    def run(self) -> str:
        """Its id."""
        return str(self.began.get("run", ""))

    @property
    def is_finished(self) -> bool:
        """Whether it ended with nothing left to do."""
        return bool(self.ended and self.ended.get("all_read")) and not any(self.waiting_or_running())

    @property
    def is_refused(self) -> bool:
        """Whether it ended before anything started, or had nothing to start since each of its lines is wrong."""
        ended = self.ended or {}
        return is_refusal(self.began, ended) or (may_have_no_job(ended) and not self.jobs)

    def waiting_or_running(self) -> Iterable[JobState]:
        """The jobs that have not ended."""
        return (each for each in self.jobs.values() if each.state in UNFINISHED)

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state; refused lines count as not started."""
        counts = dict.fromkeys(get_args(State), 0)
        for each in self.jobs.values():
            counts[each.state] += 1
        counts["not started"] += len(self.refused)
        return counts

    def lines_of(self, path: str) -> KnownLines:
        """What is known of the lines of a followed file."""
        held = self._held.get(path, _HeldLines())
        lines = [(digest, number) for number, digest in self._digests.items() if held.has(number)]
        return KnownLines(
            [line for line in lines if line[1] <= held.marked and line[1] != held.unfinished],
            [line for line in lines if line[1] > held.marked],
            next((line for line in lines if line[1] == held.unfinished), None),
            {line[1]: self.refused[line[1]]["problem"] for line in lines if line[1] in self.refused},
        )

    def feed(self, records: Iterable[Record]) -> None:
        """Take in more records. Unknown or impossible ones are counted and skipped."""
        for record in records:
            name = record["event"]
            take = self._on.get(name)
            if take is None:
                self.unknown.add(name)
                continue
            if not is_sound(record):
                self.unreadable += 1
                continue
            try:
                self.last_at = record["at"]
                take(record)
            except (KeyError, ValueError):  # a field or the job is missing, or a command is no text
                self.unreadable += 1

    def _began(self, record: Record) -> None:
        self.began = {**_BEGAN, "run": record["run"], "version": record["version"], **record}
        self.first_began = self.first_began or self.began
        self.argvs.append(self.began["argv"])
        self.ended = None
        self.is_keeper_alone = self.is_paused = False
        self.waits = []
        for each in self.jobs.values():
            if each.state == "interrupted":
                each.state = "waiting"

    def _read(self, record: Record) -> None:
        number = record["job"]
        self.jobs[number] = JobState(_job(record), record["at"])
        self.since_mark.append(number)
        self._note_digest(record)

    def _marked(self, record: Record) -> None:
        source = record["source"]
        self.marks[source] = record
        self.since_mark.clear()
        newest = self._newest_digested
        held = _HeldLines(tuple(record["holds"]), newest) if "holds" in record else self._held.get(source, _HeldLines())
        self._held[source] = held._replace(marked=newest, unfinished=record.get("unfinished", 0))

    def _refused(self, record: Record) -> None:
        self.refused[record["job"]] = {"source": "", "line": 0, "problem": "", **record}
        self._note_digest(record)

    def _note_digest(self, record: Record) -> None:
        if record.get("digest"):
            self._digests[record["job"]] = record["digest"]
            self._newest_digested = max(self._newest_digested, record["job"])  # refused lines are recorded first

    def _started(self, record: Record) -> None:
        state = self.jobs[record["job"]]
        if state.state == "running":  # an earlier attempt has no recorded end
            state.interrupted += 1
        state.state = "running"
        state.attempts = max(state.attempts, record["attempt"])
        state.started_at, state.ended_at, state.length = record["at"], 0.0, 0.0
        state.gpus = tuple(record["gpus"])
        state.log = record.get("log", "")

    def _job_began(self, record: Record) -> None:
        """It waited in a cluster's queue until now."""
        self.jobs[record["job"]].started_at = record["at"]

    def _ended(self, record: Record) -> None:
        state = self.jobs[record["job"]]
        self.survivors.pop((record["job"], record["attempt"]), None)
        state.attempts = max(state.attempts, record["attempt"])
        state.outcome = Outcome(record["outcome"], record["code"], record.get("reason", ""))
        state.started_at, state.length, state.ended_at = record["started"], record["runtime"], record["at"]
        state.exited = None
        is_interrupted = record.get("interrupted", False)
        if is_interrupted and state.state == "running":  # if it was to be retried, it had ended by itself before
            state.interrupted += 1
            state.outcome = None
        state.state = state_after(
            record["outcome"],
            is_final=record["final"],
            is_interrupted=is_interrupted,
            is_cancelled=record.get("cancelled", False),
        )

    def _exited(self, record: Record) -> None:
        """What the keeper saw, which counts if the scheduler recorded no end."""
        state = self.jobs[record["job"]]
        self.survivors.pop((record["job"], record["attempt"]), None)
        self._ran(record["job"], record["attempt"], record["at"])
        if state.state == "running" and state.attempts == record["attempt"]:
            state.exited = record["status"]
            state.outcome = outcome_of(record["status"])
            state.ended_at = record["at"]
            state.length = max(0.0, record["at"] - state.started_at)
            state.state = state_after(state.outcome.kind)

    def _alone(self, record: Record) -> None:
        self.is_keeper_alone = True
        self.survivors.update({(job, attempt): pid for job, attempt, pid in record["running"]})
        for job, attempt, _pid in record["running"]:
            self._ran(job, attempt, record["at"])

    def _ran(self, job: int, attempt: int, at: float) -> None:
        """A keeper recorded it. On a full disk the record of its start may be missing, but it must not start again."""
        state = self.jobs.get(job)
        if state and attempt > state.attempts:
            state.interrupted += state.state == "running"
            state.state, state.attempts, state.started_at = "running", attempt, at

    def _dropped(self, record: Record) -> None:
        state = self.jobs[record["job"]]
        state.state = state_after("not started", is_cancelled=record.get("cancelled", False))
        state.reason = record["reason"]
        state.ended_at = record["at"]

    def _requeued(self, record: Record) -> None:
        if "attempt" in record:  # it never began
            state = self.jobs[record["job"]]
            state.state, state.attempts = "waiting", record["attempt"] - 1
        else:
            self._requeue(record["job"])

    def _requeue(self, number: int) -> None:
        state = self.jobs[number]
        state.interrupted += state.state == "running"  # how it ended is unknown
        state.state = "waiting"

    def _noticed(self, record: Record) -> None:
        if record["is_failure"]:
            self.problems.append(record["sentence"])


def read_state(data: bytes) -> RunState:
    """The state of a run, from its whole journal. A ValueError says that it is not a journal, or of a newer version."""
    return state_of(read_records(data))


def state_of(contents: Contents) -> RunState:
    """The same, from its records."""
    versions = [record.get("version") for record in contents.records if record["event"] == "run began"]
    newer = [version for version in versions if isinstance(version, int) and version > VERSION]
    if newer:  # its fields are unknown here
        raise ValueError(f"it was written by a newer version (format {newer[0]})")
    state = RunState()
    state.unreadable = contents.unreadable
    state.feed(contents.records)
    if not state.began:
        raise ValueError("it does not start like a journal")
    return state


def _job(record: Record) -> Job:
    return Job(
        record["job"],
        record["command"].encode("utf-8", "surrogateescape"),
        Place(record["line"], record.get("source", ""), record.get("digest", "")),
        name=record.get("name", ""),
        after=tuple(record.get("after", ())),
        **read_options(record),
    )
