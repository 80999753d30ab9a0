"""`simple_hypersearch`: prints the commands of a sweep, to be piped into the scheduler."""

import io
import re
import signal
import sys
from random import SystemRandom

import click

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.hypersearch.grid import commands

from .params import Command, SeveralValues, version_option

_EXAMPLE = 'simple_hypersearch "python3 train.py --lr {lr}" -p lr 0.1 0.01'
_NEGATIVE_NUMBER = re.compile(r"-\.?\d")


def _is_value(word: str) -> bool:
    return not word.startswith("-") or bool(_NEGATIVE_NUMBER.match(word))


def _hypersearch(
    pattern: str, parameter: tuple[tuple[str, ...], ...], sampling_mode: str, n_samples: int | None, seed: int | None
) -> None:
    # Nobody may be reading any more (`| head`): that ends a filter without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # what was typed in another encoding comes out as it was
    parameters: dict[str, tuple[str, ...]] = {}
    for name, *values in parameter:
        if name in parameters:
            raise UserError(f"the parameter {name} is given twice; write all its values behind one -p {name}")
        parameters[name] = tuple(values)
    lines = commands(
        pattern,
        parameters,
        shuffled=sampling_mode == "shuffled_grid",
        samples=n_samples,
        seed=SystemRandom().getrandbits(32) if seed is None else seed,
    )
    for line in lines:
        print(line)


hypersearch = Command(
    "simple_hypersearch",
    callback=_hypersearch,
    help="Print PATTERN once for each combination of the parameters' values, which replace {NAME} in it.",
    params=[
        click.Argument(["pattern"]),
        SeveralValues(
            ["-p", "--parameter"],
            takes=_is_value,
            example=_EXAMPLE,
            metavar="NAME VALUE...",
            help="A parameter and its values; once for each parameter.",
        ),
        click.Option(
            ["--sampling-mode"],
            type=click.Choice(["shuffled_grid", "grid"]),
            default="shuffled_grid",
            help="In a random order, or in that of the grid.  [default: shuffled_grid]",
        ),
        click.Option(
            ["--n-samples"], type=click.IntRange(1), metavar="N", help="Print so many combinations.  [default: all]"
        ),
        click.Option(
            ["--seed"], type=int, metavar="N", help="Print the same lines, in the same order, for the same N."
        ),
        version_option(f"simple_hypersearch {__version__}"),
    ],
    sections=(("Options", ("parameter", "sampling_mode", "n_samples", "seed")),),
    examples=f"""
{_EXAMPLE}
simple_hypersearch "python3 train.py --lr {{lr}} --bs {{bs}}" -p lr 0.1 0.01 -p bs 32 64 | simple_gpu_scheduler --gpus 0
""",
)
