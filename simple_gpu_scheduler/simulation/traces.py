"""The workload to simulate: read from a trace or from past runs, or generated."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.simulation.workloads.rows import TraceJob, arrivals, left_out
from simple_gpu_scheduler.simulation.workloads.synthetic import Synthetic, generate

from .compare import Site
from .simulate import Arrival

if TYPE_CHECKING:
    from simple_gpu_scheduler.journal.run_state import RunState

HISTORY = "history"
_JOURNAL = '{"event":"'
_APART = 1_000_003  # between the seeds of --repeat, so that the next --seed repeats no workload


class Trace(NamedTuple):
    """What is simulated: one workload or several alike, where, its name, and remarks for the user."""

    name: str
    workloads: Sequence[Sequence[Arrival]]
    site: Site
    estimates: str
    remarks: Sequence[str]
    fair_by: str = "label"


class Found(NamedTuple):
    """Workloads as read or generated, with the default for --estimates, and the number of GPUs they ran on."""

    name: str
    workloads: Sequence[Sequence[TraceJob]]
    estimates: str
    remarks: Sequence[str] = ()
    gpus: int = 0


def to_trace(found: Found, site: Site, estimates: str) -> Trace:
    """The jobs as they would arrive at this site."""
    name, remarks = safe(found.name), list(found.remarks)
    if estimates == "requested" and not any(row.requested is not None for rows in found.workloads for row in rows):
        raise UserError(f"{name} has no requested times; choose another value for --estimates")
    workloads = []
    for rows in found.workloads:
        workload, more = arrivals(rows, site.gpus, estimates)
        workloads += [workload] if workload else []
        remarks += [each for each in more if each not in remarks]
    if not workloads:
        raise UserError(f"{name} has no job to simulate{': ' if remarks else ''}{'; '.join(remarks)}")
    return Trace(found.name, workloads, site, estimates, remarks)


def invent(synthetic: Synthetic, gpus: int, seed: int, repeat: int) -> Found:
    """Generate `repeat` workloads of one kind; a ValueError says what is impossible."""
    rows = [generate(synthetic, gpus, seed + _APART * number) for number in range(repeat)]
    return Found("synthetic", rows, "exact")


def read_trace(trace: str) -> Found:
    """Read a trace: stdin, all past runs, a file, or one past run."""
    if trace == "-":
        return _found_in("stdin", sys.stdin.buffer.read())
    if trace == HISTORY:  # a file of that name is ./history
        return _history()
    if os.path.isdir(trace):
        raise UserError(f"{safe(trace)} is a directory; give a trace file")
    if os.path.exists(trace):  # a pipe is fine too
        try:
            with open(trace, "rb") as file:
                return _found_in(trace, file.read())
        except OSError as error:
            raise UserError(f"cannot read {safe(trace)}: {error.strerror}") from None
    return _past_run(trace)


def _found_in(name: str, data: bytes) -> Found:
    text = data.decode("utf-8", "replace")
    if text.startswith(_JOURNAL):
        from simple_gpu_scheduler.journal.run_state import read_state  # noqa: PLC0415 - only journals need it

        try:
            return _found_of(name, [read_state(data)])
        except ValueError as error:
            raise UserError(f"{safe(name)}: {error}") from None
    is_swf = name.endswith(".swf") or text.lstrip().startswith(";")
    from simple_gpu_scheduler.simulation.workloads.csv import read_csv  # noqa: PLC0415 - one of the two is enough
    from simple_gpu_scheduler.simulation.workloads.swf import read_swf  # noqa: PLC0415 - as above

    try:
        rows, remarks = read_swf(text) if is_swf else read_csv(text)
    except ValueError as error:
        raise UserError(f"{safe(name)}: {error}") from None
    usual = "requested" if any(row.requested is not None for row in rows) else "exact"
    return Found(name, [rows], usual, remarks)


def _past_run(trace: str) -> Found:
    from simple_gpu_scheduler.journal import find  # noqa: PLC0415 - only past runs need it

    if "/" in trace or "." in trace or not find.all_runs():
        raise UserError(f"there is no file {safe(trace)}")
    return _found_of(f"run {trace}", [find.load(find.choose(trace))])


def _history() -> Found:
    from simple_gpu_scheduler.journal import find  # noqa: PLC0415 - as above

    paths = find.all_runs()
    if not paths:
        raise UserError("no runs yet, so there is no history; give a trace file or --synthetic")
    states = []
    for path in reversed(paths):
        with suppress(UserError):  # a remark says how many cannot be read
            states.append(find.load(path))
    unread = len(paths) - len(states)
    return _found_of("your history", states, [left_out(unread, "run", "that cannot be read")] if unread else [])


def _found_of(name: str, states: "Sequence[RunState]", remarks: Sequence[str] = ()) -> Found:
    from simple_gpu_scheduler.simulation.traces import rows_of  # noqa: PLC0415 - as above

    rows = [row for state in states for row in rows_of(state)]
    on_gpus = [each for state in states for each in state.jobs.values() if each.job.gpus]
    untold = len(on_gpus) - len(rows)
    remarks = [
        *remarks,
        *(
            [left_out(untold, "job", f"that did not end by {'itself' if untold == 1 else 'themselves'}")]
            if untold
            else []
        ),
    ]
    # Not the GPUs of all runs together: a GPU may have two names.
    gpus = max((len({gpu for each in state.jobs.values() for gpu in each.gpus}) for state in states), default=0)
    return Found(name, [rows], "past", remarks, gpus)


_OWN_ENDS = ("succeeded", "failed", "timed out")


def rows_of(state: RunState) -> list[TraceJob]:
    """The GPU jobs of a run that ended by themselves or by their time-out."""
    rows = []
    for each in state.jobs.values():
        job, outcome = each.job, each.outcome
        has_ended = outcome and outcome.kind in _OWN_ENDS and each.state in ("succeeded", "failed")
        if has_ended and job.gpus > 0 and each.length >= 0:
            requested = job.timeout or None if job.time is None else job.time  # a time-out of 0 is none
            command = job.command.decode("utf-8", "surrogateescape")
            rows.append(TraceJob(each.read_at, each.length, job.gpus, job.label, requested, command, job.priority))
    return rows
