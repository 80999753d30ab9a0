"""The layout of the live view: from a picture of the run to lines of styled text that fit. Pure; it has no terminal."""

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Job
from simple_gpu_scheduler.base.text import safe, show_command, show_curve, show_waits
from simple_gpu_scheduler.base.units import show_duration, show_share
from simple_gpu_scheduler.base.values import Iterator, NamedTuple, Sequence
from simple_gpu_scheduler.display.abbreviation import shorten
from simple_gpu_scheduler.display.cells import cell_len, set_cell_size
from simple_gpu_scheduler.display.table import shorten_after
from simple_gpu_scheduler.events.eta import Eta
from simple_gpu_scheduler.events.ledger import Counts
from simple_gpu_scheduler.gpus import GpuVitals
from simple_gpu_scheduler.measurements.recent import MINUTES

Line = list[tuple[str, str]]  # pieces of text, each with the name of its style

_BETWEEN = "  "
_WIDEST_BAR, _NARROWEST_BAR = 30, 5
_LEAST_OUTPUT = 22
_SHARE_OF_REASON = 0.4  # of the width
_SHARE_OF_JOB = 5  # of the width
_NARROWEST_JOB = 10
_FEWEST_LINES = 3  # of failures, or they would mean nothing
_RECENT = f"{MINUTES} MIN"  # the curve of the utilisation of the last minutes
# Columns left out if there is too little room for a job's output, the last of these first.
_HEADINGS = ("GPU", "JOB", "TRY", "TIME", "UTIL", _RECENT, "MEMORY", "TEMP", "POWER")
_ALIGNED_RIGHT = {"TRY", "TIME", "UTIL", "MEMORY", "TEMP", "POWER"}
_LAST = "LAST OUTPUT"
_NAMES = ("GPU", "JOB")  # may be cut; half a number would be a wrong one
_DISPENSABLE = (_RECENT, "POWER", "TEMP", "TRY", "UTIL", "MEMORY")


class RunningJob(NamedTuple):
    """A running attempt: for how long, and its last output."""

    attempt: Attempt
    runtime: float
    printed: str = ""


class Failed(NamedTuple):
    """A job that failed recently, in a sentence that ends with its command, and its last output."""

    sentence: str
    printed: Sequence[str]
    command: str = ""


class Picture(NamedTuple):
    """All that is shown."""

    running: Sequence[RunningJob]
    gpus: Sequence[GpuVitals]
    counts: Counts
    all_read: bool
    eta: Eta
    waits: Sequence[Wait] = ()
    failures: Sequence[Failed] = ()
    state: str = ""


class _Row(NamedTuple):
    """A GPU with an attempt on it; only the first row of a GPU shows the GPU itself."""

    cells: dict[str, str]
    last: str
    style: str = ""
    job: Job | None = None


def frame(picture: Picture, width: int, height: int) -> list[Line]:
    """Lines of at most `width` cells, at most `height` of them."""
    below = [*_waits(picture), *_state(picture), _progress(picture, width)]
    failures = _failures(picture, width)
    rows = list(_rows(picture))
    room = height - len(below)
    left = room - len(rows) - 1
    failures = failures[:left] if left >= _FEWEST_LINES else []
    lines = [*_table(rows, width, max(1, room - len(failures))), *failures, *below]
    if len(lines) < height:  # apart from what has passed above
        lines.insert(0, [])
    return [_cut(line, width) for line in lines[-height:] if height > 0]


def _rows(picture: Picture) -> Iterator[_Row]:
    waits = {wait.gpu: wait for wait in picture.waits}
    for vitals in picture.gpus:
        here = [each for each in picture.running if vitals.gpu in each.attempt.gpus]
        cells = {"GPU": safe(vitals.gpu), **_vitals(vitals)}
        for each in here:
            yield _Row({**cells, **_job(each)}, safe(each.printed), job=each.attempt.job)
            cells = {"GPU": ""}
        if not here:
            wait = waits.get(vitals.gpu)
            yield _Row(cells, safe(wait.sentence) if wait else "no job", "yellow" if wait else "dim")
    known = {vitals.gpu for vitals in picture.gpus}
    for gpu in waits.keys() - known:
        yield _Row({"GPU": safe(gpu)}, safe(waits[gpu].sentence), "yellow")
    for each in picture.running:
        if not known.intersection(each.attempt.gpus):
            where = ",".join(each.attempt.gpus) or "cpu"
            yield _Row({"GPU": safe(where), **_job(each)}, safe(each.printed), job=each.attempt.job)


def _job(each: RunningJob) -> dict[str, str]:
    job = each.attempt.job
    return {
        "JOB": f"{job.number} {_name(job)}",
        "TRY": str(each.attempt.number),
        "TIME": show_duration(each.runtime),
    }


def _name(job: Job) -> str:
    return safe(job.name) or show_command(job.command)


def _vitals(vitals: GpuVitals) -> dict[str, str]:
    cells = {}
    if vitals.utilization is not None:
        cells["UTIL"] = f"{vitals.utilization} %"
    if vitals.recent:
        cells[_RECENT] = show_curve(vitals.recent)
    if vitals.used is not None and vitals.total:
        cells["MEMORY"] = show_share(vitals.used, vitals.total)
    if vitals.temperature is not None:
        cells["TEMP"] = f"{vitals.temperature} °C"
    if vitals.power is not None:
        cells["POWER"] = f"{vitals.power:.0f} W"
    return cells


def _table(rows: Sequence[_Row], width: int, height: int) -> list[Line]:
    """The rows in columns, with headings; rows without room are counted."""
    shown = rows if len(rows) + 1 <= height else rows[: max(0, height - 2)]
    widths = _widths(shown, width)
    shown = _told_apart(shown, widths)
    lines: list[Line] = [[*_headings(widths), (_LAST, "dim")]]
    for row in shown:
        line: Line = []
        for name, size in widths.items():
            line.append((_fit(row.cells.get(name, ""), size, name) + _BETWEEN, _STYLES.get(name, "")))
        lines.append([*line, (row.last, row.style)])
    if len(shown) < len(rows):
        lines.append([(f"… {len(rows) - len(shown)} more rows (terminal too short)", "dim")])
    return lines


_STYLES = {"GPU": "bold", "JOB": "cyan", "UTIL": "green", _RECENT: "green", "TRY": "yellow"}


def _headings(widths: dict[str, int]) -> Line:
    return [(_fit(name, size, name) + _BETWEEN, "dim") for name, size in widths.items()]


def _widths(rows: Sequence[_Row], width: int) -> dict[str, int]:
    widths = {}
    for name in _HEADINGS:
        longest = max((cell_len(row.cells.get(name, "")) for row in rows), default=0)
        if longest or name in ("GPU", "JOB", "TIME"):
            most = max(_NARROWEST_JOB, width // _SHARE_OF_JOB) if name in _NAMES else longest
            widths[name] = max(len(name), min(most, longest))
    reasons = max((cell_len(row.last) for row in rows if not row.job), default=0)  # end with for how long
    least = max(_LEAST_OUTPUT, min(reasons, int(_SHARE_OF_REASON * width)))
    for name in _DISPENSABLE:
        if width - sum(widths.values()) - len(_BETWEEN) * len(widths) >= least:
            break
        widths.pop(name, None)
    if not any(row.job and row.last for row in rows):  # no job has printed anything, so its command has more room
        last = max(map(cell_len, (_LAST, *(row.last for row in rows))))
        room = width - sum(widths.values()) - len(_BETWEEN) * len(widths) - last
        longest = max((cell_len(row.cells.get("JOB", "")) for row in rows), default=0)
        widths["JOB"] = max(widths["JOB"], min(longest, widths["JOB"] + room))
    return widths


def _told_apart(rows: Sequence[_Row], widths: dict[str, int]) -> Sequence[_Row]:
    """With what the commands of a sweep share left out first."""
    jobs = [row.job for row in rows if row.job]
    names = shorten(tuple(map(_name, jobs)), tuple(widths["JOB"] - len(f"{job.number} ") for job in jobs))
    short = {job: f"{job.number} {name}" for job, name in zip(jobs, names, strict=True)}
    return [row._replace(cells={**row.cells, "JOB": short[row.job]}) if row.job else row for row in rows]


def _fit(text: str, size: int, name: str) -> str:
    missing = size - cell_len(text)
    if missing < 0:
        return set_cell_size(text, size - 1) + "…"
    return " " * missing + text if name in _ALIGNED_RIGHT else text + " " * missing


def _waits(picture: Picture) -> Iterator[Line]:
    known = {vitals.gpu for vitals in picture.gpus}
    others = [wait for wait in picture.waits if wait.gpu not in known]
    if others:
        yield [("waiting: ", "yellow"), (show_waits(others), "")]


def _state(picture: Picture) -> Iterator[Line]:
    if picture.state:
        yield [(picture.state, "yellow")]


def _failures(picture: Picture, width: int) -> list[Line]:
    lines: list[Line] = []
    heads = [failed.sentence.removesuffix(failed.command) for failed in picture.failures]
    commands = shorten_after(heads, [failed.command for failed in picture.failures], width)
    for failed, head, command in zip(picture.failures, heads, commands, strict=True):
        lines.append([(head + command, "red")])
        lines += [[("    " + safe(text), "dim")] for text in failed.printed]
    return [[("last failures:", "bold")], *lines] if lines else []


def _progress(picture: Picture, width: int) -> Line:
    counts = picture.counts
    failed = counts.failed + counts.timed_out + counts.stalled
    shown = (("failed", failed, "red"), ("not started", counts.not_started, "yellow"))
    ended = counts.succeeded + counts.unsuccessful
    so_far = "" if picture.all_read else " so far"
    line: Line = [(f"{ended} of {counts.total} done{so_far}", "bold")]
    for what, jobs, style in (*shown, ("cancelled", counts.cancelled, "yellow")):
        if jobs:
            line += [(", ", ""), (f"{jobs} {what}", style)]
    line.append((f", {counts.running} running, {counts.waiting} waiting", ""))
    if picture.eta.seconds is not None and ended < counts.total:
        line.append((f", about {show_duration(picture.eta.seconds)} left", "green"))
    size = min(_WIDEST_BAR, width - sum(cell_len(text) for text, _ in line) - 1)
    return [*_bar(counts, size), *line] if counts.total and size >= _NARROWEST_BAR else line


def _bar(counts: Counts, size: int) -> Line:
    """The whole bar is all jobs read; running jobs are not done."""
    ends = (counts.succeeded, counts.unsuccessful)
    sizes = [size * sum(ends[:at]) // counts.total for at in (0, 1, 2)]
    pieces = [("━" * (sizes[1] - sizes[0]), "green"), ("━" * (sizes[2] - sizes[1]), "red")]
    return [*pieces, ("─" * (size - sizes[2]) + " ", "dim")]


def _cut(line: Line, width: int) -> Line:
    """As much of it as fits."""
    cut: Line = []
    left = width
    for text, style in line:
        size = cell_len(text)
        if size > left:
            if left > 0:
                cut.append((set_cell_size(text, left - 1) + "…", style))
            break
        cut.append((text, style))
        left -= size
    return cut
