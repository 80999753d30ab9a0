"""The contents of a journal, as rows to show; and its jobs, as lines that can be read again. Pure.

It does not know which runs there are, whether one is active, or how rows are printed.
"""

from simple_gpu_scheduler.base.jobs import Job, Outcome, Place
from simple_gpu_scheduler.base.units import write_duration
from simple_gpu_scheduler.base.values import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.jobfile.options import AUTO, parse_options
from simple_gpu_scheduler.jobfile.parse import split_options
from simple_gpu_scheduler.jobfile.split import LineCutter

from .read import Record
from .records import option_values, text
from .run_state import JobState, RunState

# The groups by which jobs are counted and selected, and the states in each.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "succeeded": ("succeeded",),
    "failed": ("failed",),
    "running": ("running",),
    "waiting": ("waiting",),
    "not started": ("not started", "refused"),
    "cancelled": ("cancelled",),
    "interrupted": ("interrupted",),
}
_MARK = "#: "
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_NUMBER = 10**15  # the parser accepts one digit less


class RunRow(NamedTuple):
    """One run. Times are epoch seconds; `seconds` is from its start to its last record; `disk` is in bytes."""

    run: str
    journal: str
    begun: float
    ended: float | None
    state: str
    counts: Mapping[str, int]
    seconds: float
    directory: str
    host: str
    argv: Sequence[str]
    code: int | None
    disk: int = 0

    def to_json(self) -> Mapping[str, object]:
        """For JSON."""
        counts = {group.replace(" ", "_"): count for group, count in self.counts.items()}
        values = self._asdict()
        del values["counts"]
        return {**values, **counts}


class JobRow(NamedTuple):
    """One job, or a refused line, which has a reason and no job."""

    number: int
    place: Place
    state: str
    group: str
    job: Job | None
    attempts: int = 0
    outcome: Outcome | None = None
    reason: str = ""
    gpus: tuple[str, ...] = ()
    started: float | None = None
    ended: float | None = None
    runtime: float | None = None

    def to_json(self) -> Mapping[str, object]:
        """For JSON; null for what is unknown or did not happen."""
        job, outcome = self.job, self.outcome
        return {
            "job": self.number,
            "name": (job.name or None) if job else None,
            "state": self.state,
            "attempts": self.attempts,
            "outcome": outcome.kind if outcome else None,
            "code": outcome.code if outcome else None,
            "reason": self.reason or (outcome and outcome.reason) or None,
            "gpus": self.gpus,
            "started": self.started,
            "ended": self.ended,
            "runtime": self.runtime,
            "line": self.place.line,
            "source": self.place.input or None,
            "options": option_values(job) if job else {},
            "after": job.after if job else (),
            "command": text(job.command) if job else None,
        }


def run_row(state: RunState, path: str, standing: str, now: float | None) -> RunRow:
    """The row of a run. `now` is the time if it is active."""
    counts = state.counts()
    counts["refused"] = 0  # they are counted among those not started
    begun = state.first_began["at"]
    return RunRow(
        state.run,
        path,
        begun,
        None if state.ended is None or now else state.ended["at"],
        standing,
        {group: sum(counts[each] for each in states) for group, states in GROUPS.items()},
        max(0.0, round((now or state.last_at) - begun, 3)),
        str(state.began.get("directory", "")),
        str(state.began.get("host", "")),
        state.began.get("argv", ()),
        None if state.ended is None or now else state.ended.get("code"),
    )


def job_rows(state: RunState, if_running: str, now: float, groups: Iterable[str] = ()) -> list[JobRow]:
    """The jobs of a run by number; only those of the given groups, if any.

    `if_running`: the state of a job that started and has no recorded end, which depends on the run.
    """
    rows = [_job_row(each, if_running, now) for each in state.jobs.values()]
    rows += [_refused_row(number, record) for number, record in state.refused.items()]
    wanted = set(groups) or set(GROUPS)
    return sorted((row for row in rows if row.group in wanted), key=lambda row: row.number)


def _refused_row(number: int, record: Record) -> JobRow:
    place = Place(record.get("line", 0), record.get("source", ""))
    return JobRow(number, place, "refused", "not started", None, reason=str(record.get("problem", "")))


def _job_row(each: JobState, if_running: str, now: float) -> JobRow:
    is_open, group = each.state == "running", _group(each.state)
    runtime = each.length if each.ended_at else None
    if is_open:
        runtime = max(0.0, round(now - each.started_at, 3)) if if_running == "running" else None
    row = JobRow(each.job.number, each.job.place, if_running if is_open else each.state, group, each.job)
    return row._replace(
        attempts=each.attempts,
        outcome=None if is_open else each.outcome,
        reason=each.reason if group in ("not started", "cancelled") else "",
        gpus=each.gpus,
        started=each.started_at if each.attempts else None,
        ended=each.ended_at or None,
        runtime=runtime if each.attempts else None,
    )


def _option_for(state: str) -> str:
    """The option of `history` that selects such jobs."""
    return "waiting" if state == "interrupted" else _group(state).replace(" ", "-")


def _group(state: str) -> str:
    return next(group for group, states in GROUPS.items() if state in states)


def commands(rows: Iterable[JobRow], state: RunState, *, by_null: bool = False) -> bytes:
    """Jobs as lines that can be read again, with their options. A ValueError names a job for which that is impossible.

    Dependencies that succeeded and are not among them are left out.
    """
    end = b"\0" if by_null else b"\n"
    printed: dict[str, int] = {}
    pieces: list[bytes] = []
    for row in rows:
        if row.job is None:
            continue
        pieces += _pieces(row.job, _after(row.job, state, printed), by_null=by_null)
        if row.job.name:
            printed[row.job.name] = row.number
    # A byte order mark at the very start would be dropped.
    start = end if pieces and pieces[0].startswith(_BYTE_ORDER_MARK) else b""
    return start + b"".join([piece + end for piece in pieces])


def _after(job: Job, state: RunState, printed: Mapping[str, int]) -> list[str]:
    names = []
    for number in job.after:
        before = state.jobs.get(number)
        if before is None:
            raise ValueError(f"job {job.number} depends on job {number}, which is not in the journal")
        if printed.get(before.job.name) == number:
            names.append(before.job.name)
        elif before.state != "succeeded":
            raise ValueError(
                f'job {job.number} depends on job {number} "{before.job.name}", which has not succeeded and is not '
                f"selected; add --{_option_for(before.state)}"
            )
    return names


def _pieces(job: Job, after: Sequence[str], *, by_null: bool) -> list[bytes]:
    words = _option_words(job, after)
    for pieces in _ways(job, words, can_be_default=not (job.name or after)):
        if _reads_back(pieces, job.command, words, by_null=by_null):
            return pieces
    which = f"job {job.number} ({job.place})"
    if by_null:
        raise ValueError(f"{which} cannot be printed so that it reads back unchanged; use --json")
    problem = "contains a newline" if b"\n" in job.command else "cannot be printed as a line that reads back unchanged"
    raise ValueError(f"{which} {problem}; separate jobs by NUL: use --null here and in the run that reads them")


def _option_words(job: Job, after: Sequence[str]) -> str:
    words = [_option_word(key, value) for key, value in option_values(job).items()]
    words += [f"name={job.name}"] if job.name else []
    words += [f"after={','.join(after)}"] if after else []
    return " ".join(words)


def _option_word(key: str, value: Any) -> str:
    return f"mem={AUTO}" if key == "mem_auto" else f"{key}={_WRITTEN.get(key, str)(value)}"


def _ways(job: Job, words: str, *, can_be_default: bool) -> Iterator[list[bytes]]:
    """The ways to write a job, the plainest first."""
    if not words:
        yield [job.command]
        return
    options = (_MARK + words).encode()
    yield [job.command + b"  " + options]
    yield [job.command + b"\n" + options]  # after a comment or the end of a here-document
    if can_be_default:  # nothing can follow a comment, an open quote or a blank at the end
        yield [options, job.command, _MARK.strip().encode()]


def _reads_back(pieces: Sequence[bytes], command: bytes, words: str, *, by_null: bool) -> bool:
    end = b"\0" if by_null else b"\n"
    cutter = LineCutter(by_null=by_null)
    lines = [line.text for line in cutter.feed(end + b"".join([piece + end for piece in pieces]))]
    if lines != [b"", *pieces] or cutter.finish():
        return False
    line, wanted = (pieces[0], words) if len(pieces) == 1 else (command, "")
    try:
        return split_options(line) == (command, parse_options(wanted.encode()))
    except ValueError:
        return False


def _size(size: int) -> str:
    for unit, width in (("T", 2**40), ("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if size and size % width == 0 and size // width < _LONGEST_NUMBER:
            return f"{size // width}{unit}"
    return str(size) if size < _LONGEST_NUMBER else f"{size / 2**40!r}T"


_WRITTEN = {"mem": _size, "timeout": write_duration, "time": write_duration}
