"""The bottom part of a terminal, which is redrawn again and again, and the lines that scroll by above it.

It changes nothing that would have to be restored: no alternate screen, no hidden cursor, no raw mode. So whatever
happens to this process, the terminal stays usable. It knows nothing of what is drawn.
"""

import os
from functools import lru_cache

from rich.color import ColorSystem
from rich.style import Style

from simple_gpu_scheduler.base.values import Sequence
from simple_gpu_scheduler.display.cells import cell_len
from simple_gpu_scheduler.system.writer import Writer

from .frame import Line

_UP, _TO_END_OF_LINE, _TO_END = "\x1b[{}A", "\x1b[K", "\x1b[J"
# Each is undone in the same write: a line that the terminal takes for wider than we do must not become two.
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class Screen:
    """Draws with one write each time, so that nothing else gets in between."""

    def __init__(self, fd: int, *, coloured: bool) -> None:
        self._fd = fd
        self._writer = Writer(fd)
        self._system = ColorSystem.STANDARD if coloured else None
        self._widths: list[int] = []  # of the lines that were drawn and are still there
        self._shown: Sequence[Line] = ()

    def size(self) -> tuple[int, int]:
        """Columns and lines, now."""
        try:
            size = os.get_terminal_size(self._fd)
        except OSError:  # the connection is gone
            return 80, 24
        return size.columns or 80, size.lines or 24

    @property
    def is_ours(self) -> bool:
        """Whether we are in the foreground, and the terminal is read."""
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return False

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has not yet taken what was written, as after Ctrl-S."""
        return self._writer.is_behind

    def forget(self) -> None:
        """Others have written since: keep what was drawn, and draw below it."""
        self._widths.clear()
        self._shown = ()

    def say(self, messages: Sequence[str]) -> None:
        """Write only messages, while others may write too; leave what they wrote."""
        self.forget()
        if messages:
            text = "".join([f"{_TO_END_OF_LINE}{message}\n" for message in messages])
            self._writer.write(f"\r{text}".encode("utf-8", "backslashreplace"))

    def draw(self, messages: Sequence[str], lines: Sequence[Line]) -> None:
        """Messages stay above; the lines replace those drawn before."""
        if not messages and lines == self._shown:
            return
        text = [self._back()]
        if messages:
            text += [_TO_END, *(message + "\n" for message in messages)]
        text += [_NO_WRAP, *(self._styled(line) + _TO_END_OF_LINE + "\n" for line in lines), _WRAP, _TO_END]
        self._writer.write("".join(text).encode("utf-8", "backslashreplace"))
        self._widths = [sum(cell_len(text) for text, _ in line) for line in lines]
        self._shown = lines

    def close(self) -> None:
        """Wait until all is written or nothing reads it."""
        self._writer.close()

    def _back(self) -> str:
        """Back to the start of what was drawn. Lines for which the terminal became too narrow count as several."""
        columns, _ = self.size()
        lines = sum(max(1, -(-width // columns)) for width in self._widths)
        return "\r" + (_UP.format(lines) if lines else "")

    def _styled(self, line: Line) -> str:
        system = self._system
        return "".join([_style(style).render(text, color_system=system) if style else text for text, style in line])


@lru_cache
def _style(name: str) -> Style:
    return Style.parse(name)
