"""`gpus`: what is on each GPU, who has leased it, who uses it, and whether it is free."""

import os
import sys

from simple_gpu_scheduler.base.errors import SOME_DID_NOT_SUCCEED, SUCCEEDED
from simple_gpu_scheduler.base.stdlib import json
from simple_gpu_scheduler.base.text import BLOCKS, can_print, safe, show_curve
from simple_gpu_scheduler.base.values import Any, Sequence
from simple_gpu_scheduler.cli.declarations import Command, Option, Section
from simple_gpu_scheduler.cli.options.gpus import gpu_sections, take_wants
from simple_gpu_scheduler.display import table
from simple_gpu_scheduler.gpus.discover import find_machine
from simple_gpu_scheduler.gpus.survey import HEADINGS, GpuReport, Survey, cells
from simple_gpu_scheduler.measurements.recent import MINUTES

_FREE, _NOT_FREE = "32", "33"  # green, yellow
_RECENT = f"{MINUTES} MIN"  # the utilisation of the last minutes, for whoever looks again and again
_EXAMPLES = r"""
simple_gpu_scheduler gpus
simple_gpu_scheduler gpus --watch
simple_gpu_scheduler gpus --json | jq '.[] | select(.free) | .gpu'
"""
_HELP = """Show what is on each GPU: memory, utilisation, temperature, power, lease and users.

A GPU is free if a run that starts now would use it.
"""
_SECTIONS = (
    *gpu_sections("simple_gpu_scheduler gpus --gpus 0 1"),
    Section(
        "Display",
        (
            Option(["--json", "as_json"], is_flag=True, help="Print a JSON array; with --watch, one per line."),
            Option(
                ["--watch"],
                is_flag=True,
                help=f"Repeat every two seconds until Ctrl-C. The column {_RECENT} shows the utilisation of the last "
                "five minutes; it is left out where the terminal is too narrow.",
            ),
        ),
    ),
)


def _gpus(as_json: bool, watch: bool, **typed: Any) -> int:
    wants = take_wants(typed)
    machine = find_machine(wants, os.environ)
    for remark in machine.remarks:
        print(remark, file=sys.stderr)
    survey = Survey(machine, wants)
    if not watch:
        rows = survey.look()
        _print(rows, as_json=as_json)
        return SOME_DID_NOT_SUCCEED if any(row.is_silent for row in rows) else SUCCEEDED

    def print_it() -> bool:
        _print(survey.look(), as_json=as_json, watches=True)
        return True

    table.watch(print_it)
    return SUCCEEDED


def _print(rows: list[GpuReport], *, as_json: bool, watches: bool = False) -> None:
    if as_json:
        print(json.dumps([row.to_json() for row in rows], indent=None if watches else 2), flush=True)
        return
    shown = [list(HEADINGS), *([safe(cell) for cell in cells(row)] for row in rows)]
    if watches and can_print(BLOCKS):
        after = HEADINGS.index("UTIL") + 1
        for line, cell in zip(shown, (_RECENT, *(show_curve(row.recent) for row in rows)), strict=True):
            line.insert(after, cell)
    lines = lines_of(shown, table.width_of_stdout())
    colours = ["1", *(_FREE if row.is_free else _NOT_FREE for row in rows)]
    table.show(lines, colours=colours, redraws=watches)


def lines_of(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """The table; if it is too wide for a terminal, at the cost of what is the same for every GPU, and of details."""
    lines = table.aligned(rows)
    if width is None or lines == table.cut(lines, width):
        return lines
    short = _shortened(rows, width)
    lines = table.aligned(short)
    if lines != table.cut(lines, width):
        lines = table.aligned(table.with_room(short, width, _dispensable(short)))
    return table.cut(lines, width)


def _shortened(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Without the maker of the GPUs and the limit of their power; and the state has a third of the width."""
    heading, *body = map(list, rows)
    name, power, state = map(heading.index, ("NAME", "POWER", "STATE"))
    for row in body:
        row[name] = row[name].removeprefix("NVIDIA ")
        row[power] = _without_limit(row[power])
        [row[state]] = table.cut([row[state]], max(width // 3, len("STATE")))
    return [heading, *body]


def _without_limit(power: str) -> str:
    """`60 W` for `60 / 400 W`."""
    drawn, slash, limit = power.partition(" / ")
    return f"{drawn} W" if slash and limit.endswith(" W") else power


def _dispensable(rows: Sequence[Sequence[str]]) -> Sequence[str]:
    """The columns that may be left out, the first of these first: the name says least where all are the same."""
    models = {row[rows[0].index("NAME")] for row in rows[1:]}
    names = ("NAME", "POWER", "TEMP") if len(models) == 1 else ("POWER", "TEMP", "NAME")
    return [name for name in (_RECENT, *names) if name in rows[0]]


gpus_command = Command(
    "gpus",
    callback=_gpus,
    has_machine_defaults=True,
    help=_HELP,
    sections=_SECTIONS,
    examples=_EXAMPLES,
)
