"""`run`: waits for free GPUs, runs one command with the terminal, and ends as it does."""

import os
import sys
from typing import Any

import click

from simple_gpu_scheduler.units import parse_duration

from .gpu_options import NAMES, WHEN_FREE, gpu_options, take_wants
from .params import Command, Parsed

_EXAMPLE = "simple_gpu_scheduler run --gpus 0 1 -- python train.py"
_EXAMPLES = r"""
simple_gpu_scheduler run -- python train.py --lr 0.1
simple_gpu_scheduler run -n 2 -- torchrun --nproc-per-node 2 train.py
simple_gpu_scheduler run --no-wait -- python quick_look.py || echo 'no GPU is free'
simple_gpu_scheduler run --wait 30m -- bash
"""
_HELP = """Wait for a GPU that is free, run COMMAND on it with the terminal, and exit with its exit code.

The exit code is 128 and its number for a command that a signal ended, 75 when --no-wait found no free GPU, 124 when
--wait was over, and 126 or 127 when the command cannot be started. What the command leaves running is ended.
"""
_SECTIONS = (
    ("Where it runs", (*NAMES, "number")),
    ("When a GPU counts as free", WHEN_FREE),
    ("How long to wait", ("wait", "no_wait")),
)


def _options() -> list[click.Parameter]:
    return [
        *gpu_options(_EXAMPLE),
        click.Option(
            ["-n", "--number"], type=click.IntRange(1), metavar="N", default=1, help="How many.  [default: 1]"
        ),
        click.Option(["--wait"], type=Parsed("duration", parse_duration), help="Give up after this long: 30m."),
        click.Option(["--no-wait"], is_flag=True, help="Give up at once when no GPU is free."),
        click.Argument(["command"], nargs=-1, type=click.UNPROCESSED, required=True),
    ]


def _run(number: int, wait: float | None, no_wait: bool, command: tuple[str, ...], **options: Any) -> int:
    from simple_gpu_scheduler.one_command import Errand, run_errand  # noqa: PLC0415 - not for --help

    if no_wait and wait is not None:
        raise click.UsageError("--wait and --no-wait exclude each other.")
    errand = Errand(command, number, 0 if no_wait else wait, take_wants(options))
    return run_errand(errand, os.environb, lambda text: print(text, file=sys.stderr, flush=True))


run_command = Command(
    "run",
    params=_options(),
    callback=_run,
    help=_HELP,
    short_help="Run one command on a free GPU.",
    sections=_SECTIONS,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
)
