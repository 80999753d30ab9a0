"""Several sweeps, one after another, as one output."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from simple_gpu_scheduler.errors import UserError

from .commands import Commands, Output
from .sweep import Sweep


class Sweeps:
    """The commands of all of them, each once. What can be wrong is found when this is made."""

    def __init__(self, sweeps: Sequence[Sweep], *, lines_end: bool = True) -> None:
        """`lines_end`: a newline ends a command, so that none may have one."""
        self._all = []
        for number, sweep in enumerate(sweeps, 1):
            try:
                self._all.append(Commands(sweep, is_alone=len(sweeps) == 1, lines_end=lines_end))
            except UserError as error:
                raise UserError(f"sweep {number}: {error}" if len(sweeps) > 1 else str(error)) from None
        self._output = Output(self.total if any(commands.uses_total for commands in self._all) else 0)

    @cached_property
    def total(self) -> int:
        """How many commands there are; they are made for it where there is no other way."""
        known = [commands.count() for commands in self._all]
        if len(known) == 1 and known[0] is not None:
            return known[0]
        output = Output()
        return sum(1 for commands in self._all for _ in commands.lines(output))

    def lines(self) -> Iterator[str]:
        """The commands; a UserError at the end says that there was none."""
        for commands in self._all:
            yield from commands.lines(self._output)
        if not self._output.count:
            who = "none of the combinations that were tried" if self._output.gave_up else "no combination"
            raise UserError(f"{who} meets the conditions, so there is nothing to run; loosen --where")

    def notes(self) -> list[str]:
        """What is to be said, complete when the lines have ended."""
        notes = [note for commands in self._all for note in commands.notes] + self._output.notes
        left_out = self._output.left_out
        if left_out:
            notes.append(f"left out {left_out} {'line' if left_out == 1 else 'lines'} that had been there before")
        return list(dict.fromkeys(notes))
