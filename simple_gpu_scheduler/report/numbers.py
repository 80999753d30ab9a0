"""Jobs and their attempts -> the figures of a run: outcomes, command templates, GPUs, longest, failures. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from simple_gpu_scheduler.base.values import NamedTuple

from .timeline import Span

# In display order.
STATES = (
    "succeeded",
    "failed",
    "timed out",
    "stalled",
    "killed",
    "not started",
    "cancelled",
    "interrupted",
    "running",
    "waiting",
)
FAILED = ("failed", "timed out", "stalled", "killed")
CPU = "cpu"
_LONGEST = 5

Times = tuple[float, float]  # from, to


class CountedJob(NamedTuple):
    """A job, for counting. `seconds` is the time of all its attempts, `runtime` that of the newest."""

    number: int
    template: str
    state: str
    runtime: float | None
    seconds: float


class Template(NamedTuple):
    """The figures of all jobs with one template."""

    template: str
    jobs: int
    succeeded: int
    failed: int
    mean: float | None
    longest: float | None
    total: float


class GpuShare(NamedTuple):
    """How much a GPU was used: for how long it had an attempt, and as a share of the run."""

    gpu: str
    attempts: int
    busy: float
    share: float


def count_outcomes(rows: Iterable[CountedJob]) -> dict[str, int]:
    """The number of jobs by state, without zeros."""
    counts = Counter(row.state for row in rows)
    return {state: counts[state] for state in STATES if counts[state]}


def by_template(rows: Iterable[CountedJob]) -> list[Template]:
    """By total time, largest first. Refused lines have no template."""
    groups: dict[str, list[CountedJob]] = {}
    for row in rows:
        if row.template:
            groups.setdefault(row.template, []).append(row)
    found = [_template(name, group) for name, group in groups.items()]
    return sorted(found, key=lambda each: -each.total)


def _template(name: str, rows: Sequence[CountedJob]) -> Template:
    ended = [row.runtime for row in rows if row.runtime is not None and row.state in (*FAILED, "succeeded")]
    states = Counter(row.state for row in rows)
    return Template(
        name,
        len(rows),
        states["succeeded"],
        sum(states[state] for state in FAILED),
        round(sum(ended) / len(ended), 3) if ended else None,
        max(ended, default=None),
        round(sum(row.seconds for row in rows), 3),
    )


def by_gpu(spans: Iterable[Span], sessions: Sequence[Times], until: float) -> list[GpuShare]:
    """The GPUs used, in order; `until` is the end of attempts without one."""
    used: dict[str, list[Times]] = {}
    for span in spans:
        for gpu in span.gpus or (CPU,):
            used.setdefault(gpu, []).append((span.started, span.end_by(until)))
    return [_gpu(gpu, used[gpu], sessions) for gpu in sorted(used, key=in_order)]


def _gpu(gpu: str, times: Sequence[Times], sessions: Sequence[Times]) -> GpuShare:
    whole = _seconds(union(sessions))
    united = union(times)
    # Time of an attempt while there was no scheduler is not part of the run.
    share = _seconds(both(united, union(sessions))) / whole if whole else 0.0
    return GpuShare(gpu, len(times), round(_seconds(united), 3), round(min(1.0, share), 4))


def in_order(gpu: str) -> tuple[bool, bool, int, str]:
    """GPUs in natural order: by number, then by name, and CPU last."""
    is_number = gpu.isdecimal()
    return gpu == CPU, not is_number, int(gpu) if is_number else 0, gpu


def union(times: Iterable[Times]) -> list[Times]:
    """The same times merged and in order."""
    found: list[Times] = []
    for start, end in sorted(times):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def both(one: Sequence[Times], other: Sequence[Times]) -> Iterable[Times]:
    """The intersection of two unions."""
    at = 0
    for start, end in one:
        while at < len(other) and other[at][1] < start:
            at += 1
        for since, until in other[at:]:
            if since >= end:
                break
            yield max(start, since), min(end, until)


def _seconds(times: Iterable[Times]) -> float:
    return sum(end - start for start, end in times)


def longest(rows: Iterable[CountedJob]) -> list[int]:
    """The jobs that took, or have taken, the most time."""
    timed = [row for row in rows if row.runtime is not None]
    return [row.number for row in sorted(timed, key=lambda row: -(row.runtime or 0.0))[:_LONGEST]]


def failures(rows: Iterable[CountedJob]) -> list[int]:
    """All failed jobs, by number."""
    return [row.number for row in rows if row.state in FAILED]
