"""`gpus`: what is on each GPU, who has leased it, who uses it, and whether it is free."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from simple_gpu_scheduler.base.text import print_text, safe
from simple_gpu_scheduler.cli.click_extras import Command, Section
from simple_gpu_scheduler.cli.options.gpus import gpu_sections, take_wants
from simple_gpu_scheduler.display.table import aligned
from simple_gpu_scheduler.gpus.discover import find_machine
from simple_gpu_scheduler.gpus.survey import HEADINGS, GpuReport, cells, survey

if TYPE_CHECKING:
    from rich.table import Table

_EVERY = 2.0
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
            click.Option(["--json", "as_json"], is_flag=True, help="Print a JSON array; with --watch one per line."),
            click.Option(["--watch"], is_flag=True, help="Show it again every two seconds, until Ctrl-C."),
        ),
    ),
)


def _gpus(as_json: bool, watch: bool, **typed: Any) -> int:
    wants = take_wants(typed)
    machine = find_machine(wants, os.environ)
    for remark in machine.remarks:
        print(remark, file=sys.stderr)
    if not watch:
        _show(survey(machine, wants), as_json=as_json)
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        _watch(lambda: survey(machine, wants), as_json=as_json)
    return 0


def _watch(look: Callable[[], list[GpuReport]], *, as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        while True:
            _show(look(), as_json=as_json, indent=None)
            time.sleep(_EVERY)
    from rich.live import Live  # noqa: PLC0415 - only here

    with Live(_table(look()), auto_refresh=False) as live:
        while True:
            time.sleep(_EVERY)
            live.update(_table(look()), refresh=True)


def _show(rows: list[GpuReport], *, as_json: bool, indent: int | None = 2) -> None:
    if as_json:
        print(json.dumps([row.to_json() for row in rows], indent=indent), flush=True)
        return
    if not sys.stdout.isatty():
        print_text("\n".join(aligned([HEADINGS, *(list(map(safe, cells(row))) for row in rows)])))
        return
    from rich.console import Console  # noqa: PLC0415 - 15 ms, for terminals

    Console(highlight=False).print(_table(rows))


def _table(rows: list[GpuReport]) -> "Table":
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(*HEADINGS, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        style = "green" if row.is_free else "yellow"
        texts = [Text(safe(cell)) for cell in cells(row)]
        texts[HEADINGS.index("STATE")].stylize(style)
        table.add_row(*texts)
    return table


gpus_command = Command(
    "gpus",
    callback=_gpus,
    help=_HELP,
    sections=_SECTIONS,
    examples=_EXAMPLES,
)
