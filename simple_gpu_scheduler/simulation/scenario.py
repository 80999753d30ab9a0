"""What to simulate: workloads read from a trace or from past runs, or generated, and where they run."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.journal import find
from simple_gpu_scheduler.journal.run_state import RunState, read_state
from simple_gpu_scheduler.simulation.workloads.csv import read_csv
from simple_gpu_scheduler.simulation.workloads.jobs import WorkloadJob, arrivals, left_out
from simple_gpu_scheduler.simulation.workloads.swf import read_swf
from simple_gpu_scheduler.simulation.workloads.synthetic import Synthetic, generate

from .compare import Site
from .simulate import Workload

HISTORY = "history"
_JOURNAL = '{"event":"'
_APART = 1_000_003  # between the seeds of --repeat, so that the next --seed repeats no workload
_OWN_ENDS = ("succeeded", "failed", "timed out", "stalled")


class Scenario(NamedTuple):
    """What is simulated: one workload or several alike, where, their name, and remarks for the user."""

    name: str
    workloads: Sequence[Workload]
    site: Site
    estimates: str
    remarks: Sequence[str]
    fair_by: str = "label"


class Workloads(NamedTuple):
    """The jobs of each workload, as read or generated. `gpus` is how many GPUs they ran on; 0 if unknown.

    `estimates` is the default for --estimates.
    """

    name: str
    jobs: Sequence[Sequence[WorkloadJob]]
    estimates: str
    remarks: Sequence[str] = ()
    gpus: int = 0


def to_scenario(workloads: Workloads, site: Site, estimates: str) -> Scenario:
    """The jobs as they would arrive at this site."""
    name, remarks = safe(workloads.name), list(workloads.remarks)
    if estimates == "requested" and not any(job.requested is not None for jobs in workloads.jobs for job in jobs):
        raise UserError(f"{name} has no requested times; choose another value for --estimates")
    arriving = []
    for jobs in workloads.jobs:
        workload, more = arrivals(jobs, site.gpus, estimates)
        arriving += [workload] if workload else []
        remarks += [each for each in more if each not in remarks]
    if not arriving:
        raise UserError(f"{name} has no job to simulate{': ' if remarks else ''}{'; '.join(remarks)}")
    return Scenario(workloads.name, arriving, site, estimates, remarks)


def generate_workloads(synthetic: Synthetic, gpus: int, seed: int, repeat: int) -> Workloads:
    """Generate `repeat` workloads of one kind; a ValueError says what is impossible."""
    jobs = [generate(synthetic, gpus, seed + _APART * number) for number in range(repeat)]
    return Workloads("synthetic", jobs, "exact")


def read_workloads(name: str) -> Workloads:
    """Read stdin, all past runs, a trace or journal file, or one past run."""
    if name == "-":
        return _workloads_in("stdin", sys.stdin.buffer.read())
    if name == HISTORY:  # a file of that name is ./history
        return _history()
    if os.path.isdir(name):
        raise UserError(f"{safe(name)} is a directory; give a trace file")
    if os.path.exists(name):  # a pipe is fine too
        try:
            with open(name, "rb") as file:
                return _workloads_in(name, file.read())
        except OSError as error:
            raise UserError(f"cannot read {safe(name)}: {error.strerror}") from None
    return _past_run(name)


def _workloads_in(name: str, data: bytes) -> Workloads:
    text = data.decode("utf-8", "replace")
    if text.startswith(_JOURNAL):
        try:
            return _workloads_of(name, [read_state(data)])
        except ValueError as error:
            raise UserError(f"{safe(name)}: {error}") from None
    is_swf = name.endswith(".swf") or text.lstrip().startswith(";")
    try:
        jobs, remarks = read_swf(text) if is_swf else read_csv(text)
    except ValueError as error:
        raise UserError(f"{safe(name)}: {error}") from None
    usual = "requested" if any(job.requested is not None for job in jobs) else "exact"
    return Workloads(name, [jobs], usual, remarks)


def _past_run(run: str) -> Workloads:
    if "/" in run or "." in run or not find.all_runs():
        raise UserError(f"there is no file {safe(run)}")
    return _workloads_of(f"run {run}", [find.load(find.choose(run))])


def _history() -> Workloads:
    paths = find.all_runs()
    if not paths:
        raise UserError("no runs yet, so there is no history; give a trace file or --synthetic")
    states = []
    for path in reversed(paths):
        with suppress(UserError):  # a remark says how many cannot be read
            states.append(find.load(path))
    unread = len(paths) - len(states)
    remarks = [left_out(unread, "run", "that cannot be read")] if unread else []
    return _workloads_of("your history", states, remarks)


def _workloads_of(name: str, states: Sequence[RunState], remarks: Sequence[str] = ()) -> Workloads:
    jobs = [job for state in states for job in jobs_of(state)]
    on_gpus = [each for state in states for each in state.jobs.values() if each.job.gpus]
    if unended := len(on_gpus) - len(jobs):
        which = f"that did not end by {'itself' if unended == 1 else 'themselves'}"
        remarks = [*remarks, left_out(unended, "job", which)]
    # Not the GPUs of all runs together: a GPU may have two names.
    gpus = max((len({gpu for each in state.jobs.values() for gpu in each.gpus}) for state in states), default=0)
    return Workloads(name, [jobs], "past", remarks, gpus)


def jobs_of(state: RunState) -> list[WorkloadJob]:
    """The GPU jobs of a run that ended by themselves, by their timeout or because they stalled."""
    jobs = []
    for each in state.jobs.values():
        job, outcome = each.job, each.outcome
        has_ended = outcome and outcome.kind in _OWN_ENDS and each.state in ("succeeded", "failed")
        if has_ended and job.gpus > 0 and each.length >= 0:
            requested = job.timeout or None if job.time is None else job.time  # a timeout of 0 is none
            command = job.command.decode("utf-8", "surrogateescape")
            jobs.append(WorkloadJob(each.read_at, each.length, job.gpus, job.label, requested, command, job.priority))
    return jobs
