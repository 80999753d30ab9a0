"""The rules of one run, as values; it does not know how they were typed."""

from typing import NamedTuple

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.output.log_file import log_of
from simple_gpu_scheduler.run.options import FailureOptions


class RunRules(NamedTuple):
    """`reads_all`: the whole input is read first, since the order depends on it. `logs` is a directory."""

    failures: FailureOptions = FailureOptions()
    reads_all: bool = False
    run_id: bytes = b""
    logs: str = ""

    def log_of(self, job: Job) -> str:
        """The log file of a job; empty if it has none."""
        return log_of(self.logs, job)
