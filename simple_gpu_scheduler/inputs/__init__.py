"""What commands are read from: files, pipes, growing files, and the thread that reads them."""

from typing import NamedTuple


class InputOptions(NamedTuple):
    """The section "Input" of --help, and FILES."""

    files: tuple[str, ...] = ()
    null: bool = False
    follow: str | None = None
    no_follow: bool = False
