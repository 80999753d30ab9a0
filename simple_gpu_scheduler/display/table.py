"""Tables in a terminal: aligned columns, lines cut to a width, and shown again and again.

A wide character counts as two.
"""

import os
import sys
import time

from simple_gpu_scheduler.base.stdlib import shutil, signal, suppress
from simple_gpu_scheduler.base.text import print_bytes, print_text
from simple_gpu_scheduler.base.values import Callable, Sequence
from simple_gpu_scheduler.output.stdout import may_colour

from .cells import cell_len, set_cell_size

_BETWEEN = "  "
_LEAST = 6  # of a command, or it would mean nothing; so the line is cut
_EVERY = 2.0
_CLEAR = b"\x1b[H\x1b[2J"


def aligned(
    rows: Sequence[Sequence[str]], sides: str = "", *, widths: Sequence[int] = (), between: str = _BETWEEN
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


def with_commands(
    rows: Sequence[Sequence[str]], sides: str = "", *, width: int | None, most: int | None = None
) -> list[str]:
    """The lines of a table, cut to this width. The first row is the heading, and the last column holds commands.

    Commands that are too long, or have more than `most` cells, are shortened where they are alike.
    """
    heading, *body = rows
    before = sum(max(map(cell_len, column)) + len(_BETWEEN) for column in list(zip(*rows, strict=True))[:-1])
    rooms = [each for each in (most, None if width is None else max(_LEAST, width - before)) if each is not None]
    if rooms:
        commands = _shortened([row[-1] for row in body], [min(rooms)] * len(body))
        body = [[*row[:-1], command] for row, command in zip(body, commands, strict=True)]
    return cut(aligned([heading, *body], sides), width)


def shorten_after(heads: Sequence[str], texts: Sequence[str], width: int) -> Sequence[str]:
    """The texts in what each of these beginnings leaves of a line."""
    return _shortened(texts, [max(0, width - cell_len(head)) for head in heads])


def _shortened(texts: Sequence[str], widths: Sequence[int]) -> Sequence[str]:
    from .abbreviation import shorten  # noqa: PLC0415 - 5 ms that are for terminals

    return shorten(tuple(texts), tuple(widths))


def with_room(rows: Sequence[Sequence[str]], width: int, dispensable: Sequence[str]) -> list[list[str]]:
    """The same table without what would take the room of the last column, which is to have a third of the width.

    Without columns that are empty (`-`), and, as long as that is too little, without the dispensable ones, in order.
    """
    heading, *body = rows
    columns = list(zip(*body, strict=True))
    kept = [at for at in range(len(heading)) if at == len(heading) - 1 or not body or set(columns[at]) != {"-"}]
    sizes = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    needed = min(sizes[-1], width // 3)
    for name in dispensable:
        at = heading.index(name)
        if at in kept and width - sum(sizes[each] + len(_BETWEEN) for each in kept[:-1]) < needed:
            kept.remove(at)
    return [[row[at] for at in kept] for row in rows]


def cut(lines: Sequence[str], width: int | None) -> list[str]:
    """The same lines, cut to this width."""
    if width is None:
        return list(lines)
    return [line if cell_len(line) <= width else set_cell_size(line, width - 1) + "…" for line in lines]


def width_of_stdout() -> int | None:
    """The width of the terminal; None if stdout is not a terminal, so nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show(lines: Sequence[str], *, colours: Sequence[str] = (), redraws: bool = False) -> None:
    """Print lines, each in its colour (a number of ECMA-48) if the terminal has colours.

    With `redraws` they take the place of what is on the screen, and are cut to it.
    """
    if redraws and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        width, height = shutil.get_terminal_size()
        lines = cut(lines[: height - 1], width)
        print_bytes(_CLEAR)
    if colours and may_colour():
        lines = [f"\x1b[{colour}m{line}\x1b[0m" for colour, line in zip(colours, lines, strict=False)]
    print_text("\n".join(lines))


def watch(print_it: Callable[[], bool]) -> None:
    """Call this every two seconds, until it returns False or Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        while print_it():
            time.sleep(_EVERY)
