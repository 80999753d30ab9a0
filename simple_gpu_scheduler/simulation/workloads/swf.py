"""A log in the Standard Workload Format -> jobs: 18 fields per line, comments after `;`, -1 for unknown.

It does not know where the text comes from. Pure.
"""

from collections.abc import Sequence

from simple_gpu_scheduler.scheduling.estimates import MOST_SECONDS

from .cells import seconds, whole
from .jobs import WorkloadJob, left_out

_FIELDS = 18
_UNKNOWN = -1
# The field of each value, counted from 0.
_SUBMIT, _RUNTIME, _ALLOCATED, _ASKED, _REQUESTED, _USER = 1, 3, 4, 7, 8, 11


def read_swf(text: str) -> tuple[list[WorkloadJob], list[str]]:
    """The jobs, and a remark on rows left out; a ValueError says which line is wrong, and how."""
    jobs: list[WorkloadJob] = []
    unknown = 0
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        fields = line.split()
        if not fields or fields[0].startswith(";"):
            continue
        try:
            job = _job(fields)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if job is None:
            unknown += 1
        else:
            jobs.append(job)
    which = "without a submit time, a run time or processors"
    return jobs, [left_out(unknown, "row", which)] if unknown else []


def _job(fields: Sequence[str]) -> WorkloadJob | None:
    """The job of a row; None if values are missing."""
    if len(fields) != _FIELDS:
        found = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
        raise ValueError(f"{found} instead of {_FIELDS}; expected the Standard Workload Format, with comments after ;")
    submit = _seconds("the submit time (field 2)", fields[_SUBMIT])
    length = _seconds("the run time (field 4)", fields[_RUNTIME])
    processors = _count("the number of processors (field 5)", fields[_ALLOCATED])
    if processors <= 0:
        processors = _count("the number of processors (field 8)", fields[_ASKED])
    requested = _seconds("the requested time (field 9)", fields[_REQUESTED])
    user = _count("the user (field 12)", fields[_USER])
    if submit is None or length is None or processors <= 0:
        return None
    return WorkloadJob(submit, length, processors, "" if user == _UNKNOWN else str(user), requested)


def _seconds(name: str, text: str) -> float | None:
    value = seconds(name, text, least=-MOST_SECONDS)
    if value == _UNKNOWN:
        return None
    return seconds(name, text)


def _count(name: str, text: str) -> int:
    return whole(name, text, least=_UNKNOWN)
