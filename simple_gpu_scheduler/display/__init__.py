"""What a run prints on the terminal."""

from simple_gpu_scheduler.base.values import Literal, NamedTuple

Progress = Literal["live", "plain", "none"]


class DisplayOptions(NamedTuple):
    """The section "Display" of --help."""

    progress: Progress | None = None
    quiet: bool = False
    verbose: bool = False
