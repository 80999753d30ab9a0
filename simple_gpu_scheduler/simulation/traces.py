"""The workload that `simulate` and `tune` are given: a trace, past runs, or one that is invented."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.cli.click_extras import Parsed
from simple_gpu_scheduler.cli.options.policy import fair_by_option
from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.templates import LABELS
from simple_gpu_scheduler.simulation.workloads.rows import ESTIMATES, Row, arrivals, left_out
from simple_gpu_scheduler.simulation.workloads.synthetic import Synthetic, generate, parse_synthetic

from .compare import Site
from .simulate import Arrival

if TYPE_CHECKING:
    from simple_gpu_scheduler.journal.run_state import RunState

HISTORY = "history"
_JOURNAL = '{"event":"'
_DEFAULT = "jobs=1000"
_GPUS = 8
_MOST_GPUS = 100_000
_APART = 1_000_003  # the seeds of --repeat, so that no workload comes again under the next --seed


class Trace(NamedTuple):
    """What is simulated: one workload or several like it, where, under which name, and what is to be known of it."""

    name: str
    workloads: Sequence[Sequence[Arrival]]
    site: Site
    estimates: str
    remarks: Sequence[str]
    fair_by: str = "label"


class Found(NamedTuple):
    """What was read or invented: workloads, what is usually known of their lengths, and on how many GPUs they ran."""

    name: str
    workloads: Sequence[Sequence[Row]]
    estimates: str
    remarks: Sequence[str] = ()
    gpus: int = 0


def trace_options() -> list[click.Parameter]:
    """Fresh ones, for one command."""
    return [
        click.Argument(["trace"], required=False, metavar="[TRACE]"),
        click.Option(
            ["--gpus"],
            type=Parsed("number", _parse_gpus),
            metavar="N",
            help="On how many.  [default: of past runs as many as they used, else 8]",
        ),
        click.Option(
            ["--synthetic"],
            type=Parsed("words", parse_synthetic),
            metavar="WORDS",
            help='An invented workload: "jobs=1000 gap=25 time=10-1000 gpus=1,2 users=5", or for gap '
            "load=0.9, which it comes to on average.",
        ),
        click.Option(
            ["--seed"], type=click.IntRange(0), default=1, metavar="N", help="Of what is drawn by chance.  [default: 1]"
        ),
        click.Option(
            ["--repeat"],
            type=click.IntRange(1, 100_000),
            default=1,
            metavar="N",
            help="So many workloads of --synthetic, each with another seed.  [default: 1]",
        ),
        click.Option(
            ["--estimates"],
            type=click.Choice(ESTIMATES),
            help="What is known of lengths: all; what the users said; what jobs of a kind took before; nothing.  "
            "[default: past of past runs, requested where a trace has that, else exact]",
        ),
        fair_by_option("Among whom fair and round-robin share; the label of a trace is its user.  [default: label]"),
    ]


def _parse_gpus(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_GPUS:
        raise ValueError(f"'{text}' is not a number from 1 to {_MOST_GPUS:,}: here it is how many GPUs there are, as 8")
    return int(text)


def take_trace(options: dict[str, Any]) -> Trace:
    """What these options say, taken out of all options of a command."""
    trace, synthetic, gpus = options.pop("trace"), options.pop("synthetic"), options.pop("gpus")
    seed, repeat = options.pop("seed"), options.pop("repeat")
    estimates, fair_by = options.pop("estimates"), options.pop("fair_by") or "label"
    if trace is not None and synthetic is not None:
        hint = "quote the words of --synthetic" if "=" in trace else "choose one"
        raise click.UsageError(f"TRACE and --synthetic are two workloads; {hint}")
    if trace is None and synthetic is None:
        raise click.UsageError(
            f"say what to simulate: a trace's file, a run, {HISTORY} for all your runs, or --synthetic '{_DEFAULT}'"
        )
    if synthetic is None and repeat > 1:
        raise click.UsageError("--repeat goes with --synthetic: a trace is always the same")
    try:
        if synthetic is not None:
            gpus = gpus or _GPUS
            found = Found("synthetic", _invent(synthetic, gpus, seed, repeat), "exact", [])
        else:
            found = _read(trace)
        known = estimates or found.estimates
        learns = known != "none"
        site = Site(gpus or found.gpus or _GPUS, lambda: Estimates(learns=learns), LABELS[fair_by])
        return _trace(found, site, known)._replace(fair_by=fair_by)
    except MemoryError:
        raise UserError(f"{safe(trace or '--synthetic')} does not fit into the memory of this machine") from None


def _trace(found: Found, site: Site, estimates: str) -> Trace:
    name, remarks = safe(found.name), list(found.remarks)
    if estimates == "requested" and not any(row.requested is not None for rows in found.workloads for row in rows):
        raise UserError(f"{name} tells of no job how long its user said; choose another of --estimates")
    workloads = []
    for rows in found.workloads:
        workload, more = arrivals(rows, site.gpus, estimates)
        workloads += [workload] if workload else []
        remarks += [each for each in more if each not in remarks]
    if not workloads:
        raise UserError(f"{name} has no job that could be simulated{': ' if remarks else ''}{'; '.join(remarks)}")
    return Trace(found.name, workloads, site, estimates, remarks)


def _invent(synthetic: Synthetic, gpus: int, seed: int, repeat: int) -> list[list[Row]]:
    try:
        return [generate(synthetic, gpus, seed + _APART * number) for number in range(repeat)]
    except ValueError as error:
        raise click.UsageError(f"--synthetic: {error}") from None


def _read(trace: str) -> Found:
    if trace == "-":
        return _found_in("stdin", sys.stdin.buffer.read())
    if trace == HISTORY:  # a file of that name is ./history
        return _history()
    if os.path.isdir(trace):
        raise UserError(f"{safe(trace)} is a directory; name the file of a trace")
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
        raise UserError("there is no run yet, so there is no history; name a trace's file, or --synthetic")
    states = []
    for path in reversed(paths):
        with suppress(UserError):  # it is told how many cannot be read
            states.append(find.load(path))
    unread = len(paths) - len(states)
    return _found_of("your history", states, [left_out(unread, "run", "that cannot be read")] if unread else [])


def _found_of(name: str, states: "Sequence[RunState]", remarks: Sequence[str] = ()) -> Found:
    from simple_gpu_scheduler.simulation.workloads.past_runs import rows_of  # noqa: PLC0415 - as above

    rows = [row for state in states for row in rows_of(state)]
    on_gpus = [each for state in states for each in state.jobs.values() if each.job.gpus]
    untold = len(on_gpus) - len(rows)
    remarks = [*remarks, *([left_out(untold, "job", "that did not end by itself")] if untold else [])]
    # Not those of all runs together: a GPU may have two names, and each run is one of those that are simulated.
    gpus = max((len({gpu for each in state.jobs.values() for gpu in each.gpus}) for state in states), default=0)
    return Found(name, [rows], "past", remarks, gpus)
