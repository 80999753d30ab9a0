"""What jobs print: their log files, and showing them grouped or line by line."""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.values import Literal, NamedTuple

_LOG = r"\d{4,}(-[\w.-]+)?\.log"
# A file's name may have 255 bytes.
_LONGEST_NAME = 200

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


def log_of(directory: str, job: Job) -> str:
    """The file for what a job prints, for all its attempts; nothing when it prints where we do."""
    if not directory:
        return ""
    name = "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in job.name)
    return f"{directory}/{job.number:04}{'-' if name else ''}{name[:_LONGEST_NAME]}.log"


def is_log(name: str) -> bool:
    """Whether the name of a file is one that `log_of` gives."""
    return bool(re.fullmatch(_LOG, name, re.ASCII))
