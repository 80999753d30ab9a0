"""Our own journals -> rows.

It does not know where journals are or which to use. Pure.
"""

from simple_gpu_scheduler.journal.run_state import RunState

from .rows import TraceJob

_OWN_ENDS = ("succeeded", "failed", "timed out")


def rows_of(state: RunState) -> list[TraceJob]:
    """The GPU jobs of a run that ended by themselves or by their time-out."""
    rows = []
    for each in state.jobs.values():
        job, outcome = each.job, each.outcome
        has_ended = outcome and outcome.kind in _OWN_ENDS and each.state in ("succeeded", "failed")
        if has_ended and job.gpus > 0 and each.runtime >= 0:
            requested = job.timeout or None if job.time is None else job.time  # a time-out of 0 is none
            command = job.command.decode("utf-8", "surrogateescape")
            rows.append(TraceJob(each.read_at, each.runtime, job.gpus, job.label, requested, command, job.priority))
    return rows
