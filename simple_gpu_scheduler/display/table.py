"""Tables in a terminal: aligned columns, and lines cut to a width. A wide character counts as two."""

import shutil
import sys
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size


def aligned(
    rows: Sequence[Sequence[str]], sides: str = "", *, widths: Sequence[int] = (), between: str = "  "
) -> list[str]:
    """The lines of these rows; `sides` has a `>` for each column that is aligned to the right.

    `widths` are the minimum widths of the columns, for tables that are printed row by row.
    """
    columns = zip(*([cell_len(cell) for cell in row] for row in rows), strict=True)
    widths = [max(least, *column) for least, column in zip(widths or [0] * len(rows[0]), columns, strict=True)]
    sides = sides.ljust(len(widths), "<")
    return [
        between.join(_padded(cell, side, width) for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in rows
    ]


def _padded(cell: str, side: str, width: int) -> str:
    padding = " " * (width - cell_len(cell))
    return padding + cell if side == ">" else cell + padding


def cut(lines: Sequence[str], width: int | None) -> list[str]:
    """The same lines, cut to this width."""
    if width is None:
        return list(lines)
    return [line if cell_len(line) <= width else set_cell_size(line, width - 1) + "…" for line in lines]


def width_of_stdout() -> int | None:
    """The width of the terminal; None if stdout is not a terminal, so nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
