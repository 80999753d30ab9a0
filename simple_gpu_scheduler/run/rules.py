"""What the loop itself must know of the command line: values, and nothing of how they were typed."""

from typing import NamedTuple

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.output.log_file import log_of
from simple_gpu_scheduler.scheduling.halt import Halt


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
        """Where what the job prints is kept, if it is."""
        return log_of(self.logs, job)
