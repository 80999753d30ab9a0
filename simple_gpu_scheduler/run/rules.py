"""What the loop itself must know of the command line: values, and nothing of how they were typed."""

from typing import NamedTuple

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.scheduling.halt import Halt

# A file's name may have 255 bytes.
_LONGEST_NAME = 200


class RunRules(NamedTuple):
    """Of one run."""

    timeout: float | None = None
    grace: float = 10.0
    halt: Halt | None = None
    reads_all: bool = False
    quarantine: int = 0
    run_id: bytes = b""
    logs: str = ""

    def log_of(self, job: Job) -> str:
        """See below."""
        return log_of(self.logs, job)


def log_of(directory: str, job: Job) -> str:
    """The file for what a job prints, for all its attempts; nothing when it prints where we do."""
    if not directory:
        return ""
    name = "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in job.name)
    return f"{directory}/{job.number:04}{'-' if name else ''}{name[:_LONGEST_NAME]}.log"
