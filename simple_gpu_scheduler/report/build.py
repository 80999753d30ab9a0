"""The journal of a run and the logs of its jobs -> the report, as JSON.

It puts together what the other files take from the journal and the logs. It does not know how a report is shown.
"""

from collections.abc import Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.text import visible
from simple_gpu_scheduler.base.values import Any, NamedTuple
from simple_gpu_scheduler.journal.read import Record
from simple_gpu_scheduler.journal.rows import JobRow, job_rows
from simple_gpu_scheduler.journal.run_state import JobState, RunState
from simple_gpu_scheduler.journal.samples import DrawnCurve
from simple_gpu_scheduler.scheduling.templates import template_of

from . import lanes, log_tails, numbers, use, waste
from .advice import Replay, find_advice
from .measured import Measured, replaced, tell_cores
from .parameters import Parameters, find_parameters
from .timeline import Span, Spans

VERSION = 1
Report = dict[str, Any]
_MOST_WORST, _MOST_CURVES = 20, 2000
_HAS_CODE = ("succeeded", "failed", "killed")


class Basis(NamedTuple):
    """The input of a report: a run as it was found, and what the user wants to know.

    `standing` is the state of the run; `runs_jobs`: its jobs are running; `is_alive`: its scheduler is. `is_unseen`: it
    is on another host, so only what was last written is known. `curves`: of the attempts, if they were
    read. `job`: a report of this one only. `replay` simulates the run with more jobs on a GPU. `measured`: figures from
    elsewhere, which replace those of the journal.
    """

    state: RunState
    records: Sequence[Record]
    standing: str
    is_alive: bool
    runs_jobs: bool
    now: float
    program: str
    metric: str = ""
    is_unseen: bool = False
    curves: Mapping[Key, Sequence[DrawnCurve]] = {}
    job: int | None = None
    replay: Replay | None = None
    measured: Mapping[Key, Measured] = {}


class Heard(NamedTuple):
    """The attempts of a run, when its schedulers were running, when it was last heard of, and the jobs to report."""

    spans: Spans
    sessions: Sequence[numbers.Times]
    until: float
    rows: Sequence[JobRow]


def hear(basis: Basis) -> Heard:
    """What the records tell about when things happened."""
    spans = Spans()
    spans.feed(basis.records)
    sessions = _sessions(spans, basis)
    is_seen = basis.runs_jobs and not basis.is_unseen
    until = basis.now if is_seen else max((end for _, end in sessions), default=basis.now)
    rows = job_rows(basis.state, "running" if basis.runs_jobs else "interrupted", until)
    spans.close(until, [row.number for row in rows if row.state == "running"])
    return Heard(spans, sessions, until, [row for row in rows if basis.job in (None, row.number)])


def build(basis: Basis) -> Report:
    """The report."""
    spans, sessions, until, rows = hear(basis)
    basis = basis._replace(curves={key: each for key, each in basis.curves.items() if basis.job in (None, key[0])})
    for job, each in spans.of_jobs.items():
        for span in each:
            span.measured = replaced(span.measured, basis.measured.get((job, span.number)))
    everything = [span for each in spans.of_jobs.values() for span in each]
    waste.charge(everything, until)
    tell_cores(span.measured for span in everything if span.measured)
    rows = [row._replace(runtime=_runtime(row, spans.of_jobs.get(row.number, ()))) for row in rows]
    run = _run(basis, sessions) | {"heard": until}
    counted = [_counted(row, spans.of_jobs.get(row.number, ()), until) for row in rows]
    templates = numbers.by_template(counted)
    failures = numbers.failures(counted)
    known = [span for row in rows for span in spans.of_jobs.get(row.number, ())]
    gpus, drawn = _gpus(known, spans, basis, sessions, until)
    jobs = _jobs(
        basis.state,
        rows,
        counted,
        spans,
        {each.template: at for at, each in enumerate(templates)},
        _curves(basis.curves),
    )
    parameters = _add_parameters(jobs)
    made: Report = {
        "version": VERSION,
        "made": round(basis.now, 3),
        "program": basis.program,
        "run": run,
        "job": basis.job,
        "outcomes": numbers.count_outcomes(counted),
        "templates": [each._asdict() for each in templates],
        "gpus": gpus,
        "lanes": drawn,
        "use": _use_of_run(gpus, jobs, _held_by(failures, spans, sessions, until)),
        "worst": use.worst(jobs, _MOST_WORST),
        "longest": numbers.longest(counted),
        "failures": failures,
        "waits": []
        if basis.job is not None
        else [
            {"gpu": visible(each.gpu), "for": visible(each.reason), "from": each.since, "to": each.until or until}
            for each in spans.waits
        ],
        "metric": visible(basis.metric) or None,
        "parameters": list(parameters.names),
        "axes": list(parameters.axes),
        "jobs": _with_logs(jobs, _of_rows(basis.state.jobs, rows), failures, basis.metric, basis.state.run),
    }
    return made | {"advice": find_advice(made, basis.replay)}


def _gpus(
    known: Sequence[Span], spans: Spans, basis: Basis, sessions: Sequence[numbers.Times], until: float
) -> tuple[list[Report], list[Report]]:
    """The GPUs, and their curves over the run."""
    own = {
        (job, span.number): {gpu["gpu"]: frozenset(gpu.get("of_gpu", ())) for gpu in span.measured["gpus"]}
        for job, each in spans.of_jobs.items()
        for span in each
        if span.measured
    }
    begin, end = _reach(known, basis, until)
    curves = lanes.by_gpu(basis.curves, own)
    drawn = {gpu: lanes.merged(curves[gpu], begin, end) for gpu in sorted(curves, key=numbers.in_order)}
    measured = use.by_gpu(known, drawn)
    gpus = [
        {**each._asdict(), "gpu": visible(each.gpu), "measured": _told(measured.get(visible(each.gpu)))}
        for each in numbers.by_gpu(known, sessions, until)
    ]
    totals = use.memory_of_gpus(known)
    return gpus, [lane.to_json(gpu) | {"total_memory": totals.get(gpu)} for gpu, lane in drawn.items()]


def _reach(known: Sequence[Span], basis: Basis, until: float) -> numbers.Times:
    """From when to when the lanes go: over the run, or the attempts of the only job."""
    starts, ends = [span.started for span in known], [span.end_by(until) for span in known]
    if basis.job is not None and known:
        return min(starts), max(ends)
    return min([basis.state.first_began["at"], *starts]), max([until, *ends])


def _curves(drawn: Mapping[Key, Sequence[DrawnCurve]]) -> dict[Key, list[Report]]:
    """Small ones of the utilisation, of the longest attempts, for the details of a job."""
    lengths = {key: each[0].points[-1].at - each[0].points[0].at for key, each in drawn.items() if each[0].points}
    return {key: _small(drawn[key]) for key in sorted(lengths, key=lambda key: -lengths[key])[:_MOST_CURVES]}


def _small(drawn: Sequence[DrawnCurve]) -> list[Report]:
    found = []
    for gpu, curves in lanes.by_gpu({(0, 0): drawn}, {}).items():
        points = curves[0].points
        end = points[-1].at + points[-1].seconds
        lane = lanes.merged(curves, points[0].at, end, lanes.FEW_STEPS, names=("utilization",))
        found.append(lane.to_json(gpu))
    return found


def _told(of_gpu: use.UseOfGpu | None) -> Report | None:
    return use.rounded(of_gpu._asdict()) if of_gpu else None


def _use_of_run(gpus: Iterable[Report], jobs: Iterable[Report], by_failed: float) -> Report | None:
    held = [each for each in gpus if each["gpu"] != numbers.CPU]
    found = use.totals(
        [use.UseOfGpu(**each["measured"]) for each in held if each["measured"]],
        sum(each["busy"] for each in held),
        (job["measured"]["wasted"] for job in jobs if job["measured"]),
    )
    return found | {"held_by_failed": by_failed} if found else None


def _held_by(jobs: Iterable[int], spans: Spans, sessions: Sequence[numbers.Times], until: float) -> float:
    """For how long these jobs held GPUs, in seconds."""
    known = [span for number in jobs for span in spans.of_jobs.get(number, ())]
    found = numbers.by_gpu(known, sessions, until)
    return round(sum(each.busy for each in found if each.gpu != numbers.CPU), 3)


def _sessions(spans: Spans, basis: Basis) -> list[tuple[float, float]]:
    sessions = list(spans.sessions)
    if basis.is_alive and sessions:
        begun = sessions[-1][0]
        sessions[-1] = begun, max(begun, basis.now)
    return [(round(begun, 3), round(end, 3)) for begun, end in sessions]


def _run(basis: Basis, sessions: Sequence[tuple[float, float]]) -> Report:
    state, began = basis.state, basis.state.began
    ended = state.ended if not basis.is_alive else None
    return {
        "id": visible(state.run),
        "state": visible(basis.standing),
        "begun": state.first_began["at"],
        "ended": None if basis.is_alive or not sessions else ended["at"] if ended else sessions[-1][1],
        "seconds": round(sum(end - begun for begun, end in sessions), 3),
        "sessions": sessions,
        "directory": visible(began["directory"]),
        "host": visible(began["host"]),
        "argv": [visible(each) for each in state.first_began["argv"]],
        "code": ended.get("code") if ended else None,
    }


def _runtime(row: JobRow, spans: Sequence[Span]) -> float | None:
    """For an attempt that ran on when its scheduler died, the journal has the time until its end was recorded."""
    if row.runtime is None or not spans or spans[-1].lost is None or spans[-1].ended is None:
        return row.runtime
    return min(row.runtime, round(spans[-1].ended - spans[-1].started, 3))


def _counted(row: JobRow, spans: Sequence[Span], until: float) -> numbers.CountedJob:
    state = row.state
    if state == "failed" and row.outcome:
        state = row.outcome.kind
    elif state == "refused":
        state = "not started"
    seconds = sum(span.end_by(until) - span.started for span in spans)
    template = template_of(row.job.command.decode("utf-8", "backslashreplace")) if row.job else ""
    return numbers.CountedJob(row.number, template, state, row.runtime, seconds)


def _jobs(
    state: RunState,
    rows: Iterable[JobRow],
    counted: Iterable[numbers.CountedJob],
    spans: Spans,
    templates: Mapping[str, int],
    curves: Mapping[Key, Sequence[Report]],
) -> list[Report]:
    return [
        _job(row, each, state.jobs.get(row.number), spans.of_jobs.get(row.number, ()), curves)
        | {"template": templates.get(each.template)}
        for row, each in zip(rows, counted, strict=True)
    ]


def _job(
    row: JobRow,
    counted: numbers.CountedJob,
    known: JobState | None,
    spans: Sequence[Span],
    curves: Mapping[Key, Sequence[Report]],
) -> Report:
    read = known.read_at if known else None
    started = spans[0].started if spans else None
    is_open = counted.state in ("running", "waiting", "interrupted")
    outcome = None if is_open else row.outcome
    reason = row.reason or (outcome.reason if outcome else "")
    return {
        "job": row.number,
        "name": (visible(row.job.name) or None) if row.job else None,
        "command": row.job.command.decode("utf-8", "backslashreplace") if row.job else "",
        "template": None,
        "state": counted.state,
        "reason": visible(reason) or None,
        "code": outcome.code if outcome and counted.state in _HAS_CODE else None,
        "line": row.place.line,
        "source": visible(row.place.input) or None,
        "read": read,
        "started": started,
        "ended": None if is_open else (spans[-1].ended if spans and not row.reason else row.ended),
        "wait": round(max(0.0, started - read), 3) if started is not None and read is not None else None,
        "runtime": row.runtime,
        "gpus": [visible(gpu) for gpu in row.gpus],
        "attempts": [_attempt(span, curves.get((row.number, span.number), ())) for span in spans],
        "measured": use.of_job(span.measured for span in spans),
        "log": visible(known.log) or None if known else None,
        "tail": "",
        "parameters": {},
        "result": None,
    }


def _attempt(span: Span, curves: Sequence[Report]) -> Report:
    return {
        "attempt": span.number,
        "gpus": [visible(gpu) for gpu in span.gpus],
        "started": span.started,
        "ended": span.ended,
        "outcome": span.outcome or None,
        "code": span.code,
        "measured": span.measured,
        "curves": curves,
    }


def _of_rows(known: Mapping[int, JobState], rows: Iterable[JobRow]) -> dict[int, JobState]:
    return {row.number: known[row.number] for row in rows if row.number in known}


def _add_parameters(jobs: Sequence[Report]) -> Parameters:
    with_command = [job for job in jobs if job["command"]]
    found = find_parameters([job["command"] for job in with_command])
    for job, values in zip(with_command, found.values, strict=True):
        job["parameters"] = values
    return found


def _with_logs(
    jobs: list[Report], known: Mapping[int, JobState], failures: Iterable[int], metric: str, run: str
) -> list[Report]:
    by_number = {job["job"]: job for job in jobs}
    logged = [number for number, each in known.items() if each.log]
    newest = sorted(logged, key=lambda number: known[number].started_at, reverse=True)
    failed = {*failures}
    in_turn = [number for number in newest if number in failed] + [number for number in newest if number not in failed]
    for number, tail in log_tails.read_tails(((number, known[number].log) for number in in_turn), run).items():
        by_number[number]["tail"] = tail
    if metric:
        for number in logged:
            by_number[number]["result"] = _as_json(log_tails.read_result(known[number].log, metric, run))
    return jobs


def _as_json(number: float | None) -> float | None:
    """JSON knows no nan and no inf."""
    return number if number is not None and abs(number) < float("inf") else None
