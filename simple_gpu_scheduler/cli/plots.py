"""`--plot FILE`: which form the picture has, and writing it whole or not at all."""

import os
from collections.abc import Sequence

import click

from simple_gpu_scheduler.comparing import Result
from simple_gpu_scheduler.drawing import figure_maker
from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.waits_figure import draw_waits
from simple_gpu_scheduler.whole_files import replace_file
from simple_gpu_scheduler.wording import safe

_FORMS = (".png", ".svg")


def check_plot(path: str) -> None:
    """Before an hour is simulated: what is wrong with the name, or what is missing."""
    if os.path.splitext(path)[1] not in _FORMS:
        raise click.UsageError(f"--plot {safe(path)}: name a file that ends in {' or '.join(_FORMS)}")
    check_directory(path)
    figure_maker()


def check_directory(path: str) -> None:
    """What is wrong with where it is to be written."""
    if not os.path.basename(path):
        raise UserError(f"cannot write '{safe(path)}': that names no file")
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        raise UserError(f"cannot write {safe(path)}: there is no such directory")
    if not os.access(directory, os.W_OK):
        raise UserError(f"cannot write {safe(path)}: that directory is not yours to write to")


def plot_waits(path: str, title: str, results: Sequence[Result]) -> None:
    """Draw what each policy made of it."""
    picture = draw_waits(title, results, os.path.splitext(path)[1][1:])
    try:
        replace_file(path, picture)
    except OSError as error:
        raise UserError(f"cannot write {safe(path)}: {error.strerror}") from None
