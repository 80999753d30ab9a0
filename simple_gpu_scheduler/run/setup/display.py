"""How a run is shown, and where its jobs print: decided from what was typed and from what our streams are."""

import os
import stat
from collections.abc import Mapping
from typing import Literal, NamedTuple

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.run.options import Options

Progress = Literal["live", "plain", "none"]
Output = Literal["inherit", "group", "tag", "files"]
Stdout = Literal["terminal", "pipe", "elsewhere"]

_NARROWEST, _LOWEST = 40, 8
_BOTH, _ERRORS = (1, 2), (2,)


class OwnStreams(NamedTuple):
    """What our own streams are: whether a view can be drawn on stderr, and where stdout goes."""

    can_draw: bool
    stdout: Stdout


class Showing(NamedTuple):
    """What was decided; `logged` are the streams of a job that go to its log."""

    progress: Progress = "plain"
    output: Output = "inherit"
    logged: tuple[int, ...] = ()

    def introduction(self, directory: str, *, is_named: bool, is_recorded: bool) -> str:
        """What a person should know of it, where nobody asked for it in so many words."""
        if not self.logged or is_named or (self.output in ("group", "tag") and is_recorded):
            return ""
        what = "what the jobs write to stderr" if self.logged == _ERRORS else "the jobs' output"
        way = " (simple_gpu_scheduler logs JOB shows it)" if is_recorded else ""  # that asks a journal
        return f"{what} goes to {directory}{way}"


def decide(options: Options, streams: OwnStreams) -> Showing:
    """The live view is for a terminal on which nothing else is printed. A UserError says what cannot go together."""
    if options.runs_nothing:
        return Showing("none" if options.progress == "none" else "plain")
    wants_logs = bool(options.logs) or options.logs_failed_only
    output: Output | None = options.output or ("files" if wants_logs else None)
    if output == "inherit" and wants_logs:
        raise UserError("--output inherit keeps no logs: leave it out, or --logs and --logs-failed-only")
    if _is_live(options, output, streams):
        # With `> FILE` that file would stay empty if nobody asked for logs: only stderr must not go where the view is.
        output = output or ("files" if streams.stdout == "terminal" else "inherit")
        return Showing("live", output, _ERRORS if output == "inherit" else _BOTH)
    progress: Progress = "none" if options.progress == "none" else "plain"
    output = output or "inherit"
    return Showing(progress, output, () if output == "inherit" else _BOTH)


def _is_live(options: Options, output: Output | None, streams: OwnStreams) -> bool:
    prints_here = output in ("inherit", "group", "tag") and streams.stdout == "terminal"
    if options.progress == "live" and prints_here and streams.can_draw:
        raise UserError(
            f"--progress live and --output {output} want the same terminal: leave one out, or send stdout elsewhere"
        )
    if options.progress is not None or not streams.can_draw:
        return options.progress == "live" and streams.can_draw
    # A pipe may end on this very terminal, as with `| tee`.
    goes_elsewhere = output == "files" or streams.stdout == "elsewhere"
    return goes_elsewhere and not prints_here and not options.quiet


def look_at_streams(environment: Mapping[str, str]) -> OwnStreams:
    """What ours are."""
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
    except OSError:  # it is another session's
        return False
    return is_ours and size.columns >= _NARROWEST and size.lines >= _LOWEST
