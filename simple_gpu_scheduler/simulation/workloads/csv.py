"""A trace as CSV -> jobs: a header that names the columns, one row per job. -1 means unknown, as in cluster logs.

It does not know where the text comes from. Pure.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from io import StringIO
from operator import itemgetter

from simple_gpu_scheduler.scheduling.estimates import MOST_SECONDS

from .cells import length, seconds, shown, whole
from .jobs import WorkloadJob, left_out

# Possible names of each column; the first one present counts.
_COLUMNS: Mapping[str, Sequence[str]] = {
    "submit": ("submit",),
    "duration": ("duration", "runtime"),
    "gpus": ("gpus", "procs"),
    "user": ("user", "vc"),
    "requested": ("requested", "time", "timeout"),
    "command": ("command",),
    "priority": ("priority",),
}
_GPUS = list(_COLUMNS).index("gpus")
_NEEDED = ("submit", "duration")
_EXPECTED = (
    "a trace needs the columns submit and duration (or runtime), separated by commas, and may have gpus (or procs), "
    "user (or vc), requested (or time, or timeout), priority and command"
)
_NAMES_SHOWN = 10
_UNKNOWN = ("", "-1")


def read_csv(text: str) -> tuple[list[WorkloadJob], list[str]]:
    """The jobs, and remarks on rows left out; a ValueError says which line is wrong, and how."""
    reader = csv.reader(StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    jobs: list[WorkloadJob] = []
    unfinished = without_gpu = 0
    try:
        header = _header(reader)
        columns = _columns(header)
        # The last of these is what a column that is not there has, and the others are for lines that are too short.
        blanks = [""] * (max(columns) + 2)
        pick = itemgetter(*columns)
        for cells in reader:
            job = _job(*pick(cells + blanks))
            if job is None:
                unfinished += any(map(str.strip, cells))  # an empty line is none
            elif job.gpus:
                jobs.append(job)
            else:
                without_gpu += 1
    except (ValueError, csv.Error) as error:
        raise ValueError(f"line {max(1, reader.line_num)}: {error}") from None
    remarks = [] if columns[_GPUS] >= 0 else [f"no column gpus or procs among {_listed(header)}: each job has 1 GPU"]
    remarks += [left_out(unfinished, "row", "without a duration")] if unfinished else []
    return jobs, remarks + ([left_out(without_gpu, "row", "without a GPU")] if without_gpu else [])


def _header(lines: Iterator[list[str]]) -> Sequence[str]:
    for cells in lines:
        if any(cells):
            return [cell.strip().lower() for cell in cells]
    raise ValueError(f"no header; {_EXPECTED}")


def _columns(header: Sequence[str]) -> Sequence[int]:
    """The column of each value; -1 if there is none."""
    found = {}
    for value, names in _COLUMNS.items():
        found[value] = next((header.index(name) for name in names if name in header), -1)
    missing = next((value for value in _NEEDED if found[value] < 0), None)
    if missing:
        raise ValueError(f"no column '{missing}' among {_listed(header)}; {_EXPECTED}")
    return tuple(found.values())


def _listed(header: Sequence[str]) -> str:
    return ", ".join(map(shown, header[:_NAMES_SHOWN])) + ", …" * (len(header) > _NAMES_SHOWN)


def _job(
    submit: str, duration: str, gpus: str, user: str, requested: str, command: str, priority: str
) -> WorkloadJob | None:
    """The job of a row; None if its duration is unknown."""
    if duration.strip() in _UNKNOWN:
        return None
    return WorkloadJob(
        _submitted(submit),
        length("duration", duration),
        whole("gpus", gpus) if gpus.strip() else 1,
        user.strip(),
        None if requested.strip() in _UNKNOWN else length("requested", requested),
        command.strip(),
        whole("priority", priority, least=-(10**9)) if priority.strip() else 0,
    )


def _submitted(text: str) -> float:
    """Seconds from any origin, or epoch seconds for a date, in UTC unless it says otherwise."""
    if "-" in text[1:]:  # not a sign; 1e-3 is no time of a submission
        try:
            # Python 3.10 knows no Z.
            found = datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
            return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()
        except (ValueError, OverflowError):
            pass
    try:
        return seconds("submit", text, least=-MOST_SECONDS)
    except ValueError as error:
        raise ValueError(f"{error}, or a date and time such as 2026-01-02T03:04:05") from None
