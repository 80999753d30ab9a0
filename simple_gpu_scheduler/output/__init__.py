"""What jobs print: their log files, and showing them grouped or line by line."""

from typing import Literal, NamedTuple

Mode = Literal["inherit", "group", "tag", "files"]


class OutputOptions(NamedTuple):
    """The section "Output of jobs" of --help."""

    mode: Mode | None = None
    logs: str | None = None
    failed_logs_only: bool = False

    @property
    def wants_logs(self) -> bool:
        """Whether anything was said of log files."""
        return bool(self.logs) or self.failed_logs_only
