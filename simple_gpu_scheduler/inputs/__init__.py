"""What commands are read from: files, pipes, growing files, and the thread that reads them."""

from simple_gpu_scheduler.base.values import NamedTuple

# `--follow` creates a named pipe with such a name without `--make-fifo`.
PIPE_SUFFIX = ".fifo"


class InputOptions(NamedTuple):
    """The section "Input" of --help, and FILES."""

    files: tuple[str, ...] = ()
    null: bool = False
    follow: str | None = None
    no_follow: bool = False
    make_fifo: bool = False
