"""Whether the run or its jobs use the terminal: decided from the options and the kinds of our streams."""

import os
import stat

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.values import Literal, Mapping, NamedTuple
from simple_gpu_scheduler.output import Mode, OutputOptions

from . import DisplayOptions, Progress

Stdout = Literal["terminal", "pipe", "elsewhere"]

_NARROWEST, _LOWEST = 40, 8
_BOTH, _ERRORS = (1, 2), (2,)


class OwnStreams(NamedTuple):
    """Our own streams: whether a view can be drawn on stderr, and where stdout goes."""

    can_draw: bool
    stdout: Stdout


class Layout(NamedTuple):
    """What shows the run, and where jobs print; `logged` are the streams of a job that go to its log."""

    progress: Progress = "plain"
    output: Mode = "inherit"
    logged: tuple[int, ...] = ()

    @property
    def logs_all(self) -> bool:
        """Whether all that jobs print goes to logs."""
        return self.logged == _BOTH

    def introduction(self, directory: str, *, is_named: bool, is_recorded: bool) -> str:
        """What to tell the user if this layout was not requested explicitly."""
        if not self.logged or is_named or (self.output in ("group", "tag") and is_recorded):
            return ""
        what = "what the jobs write to stderr" if self.logged == _ERRORS else "the jobs' output"
        way = f" ({PROGRAM} logs JOB shows it)" if is_recorded else ""  # `logs` needs a journal
        return f"{what} goes to {directory}{way}"


def choose_layout(
    display: DisplayOptions, output: OutputOptions, streams: OwnStreams, *, runs_nothing: bool = False
) -> Layout:
    """The live view needs a terminal on which nothing else is printed. A UserError says which options conflict."""
    progress: Progress = "none" if display.progress == "none" else "plain"
    if runs_nothing:
        return Layout(progress)
    mode: Mode | None = output.mode or ("files" if output.wants_logs else None)
    if mode == "inherit" and output.wants_logs:
        raise UserError("--output inherit keeps no logs: leave it out, or --logs and --logs-failed-only")
    if _is_live(display, mode, streams):
        # With `> FILE`, stdout goes there unless logs were requested; only stderr must stay off the terminal.
        mode = mode or ("files" if streams.stdout == "terminal" else "inherit")
        return Layout("live", mode, _ERRORS if mode == "inherit" else _BOTH)
    mode = mode or "inherit"
    return Layout(progress, mode, () if mode == "inherit" else _BOTH)


def _is_live(display: DisplayOptions, mode: Mode | None, streams: OwnStreams) -> bool:
    prints_here = mode in ("inherit", "group", "tag") and streams.stdout == "terminal"
    if display.progress == "live" and prints_here and streams.can_draw:
        raise UserError(
            f"--progress live and --output {mode} cannot share a terminal: leave one out, or send stdout elsewhere"
        )
    if display.progress is not None or not streams.can_draw:
        return display.progress == "live" and streams.can_draw
    # A pipe may end at this terminal, as with `| tee`.
    goes_elsewhere = mode == "files" or streams.stdout == "elsewhere"
    return goes_elsewhere and not prints_here and not display.quiet


def look_at_streams(environment: Mapping[str, str]) -> OwnStreams:
    """Look at our streams."""
    mode = os.fstat(1).st_mode
    kind: Stdout = "elsewhere"
    if os.isatty(1):
        kind = "terminal"
    elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        kind = "pipe"
    return OwnStreams(_can_draw(environment), kind)


def _can_draw(environment: Mapping[str, str]) -> bool:
    """Whether stderr is a terminal that can draw, is large enough, and is ours now."""
    if not os.isatty(2) or environment.get("TERM", "dumb") in ("dumb", "unknown") or environment.get("CI"):
        return False
    try:
        size = os.get_terminal_size(2)
        is_ours = os.tcgetpgrp(2) == os.getpgrp()
    except OSError:  # it belongs to another session
        return False
    return is_ours and size.columns >= _NARROWEST and size.lines >= _LOWEST
