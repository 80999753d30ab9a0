"""The command line of a run as a value."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.gpus.discover import Wants
from simple_gpu_scheduler.notify.message import Occasion
from simple_gpu_scheduler.scheduling.halt import Halt
from simple_gpu_scheduler.scheduling.policies.names import Chosen


class Options(NamedTuple):
    """The command line of a run."""

    wants: Wants
    jobs_per_gpu: int
    cpu_slots: int
    policy: Chosen
    label: Callable[[Job], str]
    delay: float
    timeout: float | None
    grace: float
    retries: int
    retry_delay: float
    halt: Halt | None
    quarantine: int
    null: bool
    follow: str | None
    no_follow: bool
    shell: str
    chdir: str | None
    dry_run: bool
    engine: Literal["local", "simulated"]
    quiet: bool
    verbose: bool
    joblog: str | None
    journal: str | None
    no_journal: bool
    keep_runs: int
    progress: Literal["live", "plain", "none"] | None
    output: Literal["inherit", "group", "tag", "files"] | None
    logs: str | None
    logs_failed_only: bool
    notify: str | None
    notify_on: tuple[frozenset[Occasion], ...]
    resume: str | None
    resume_failed: bool
    files: tuple[str, ...]
    argv: tuple[str, ...]

    @property
    def runs_nothing(self) -> bool:
        """Whether no process is to be started: nothing is leased, kept or told then."""
        return self.dry_run or self.engine == "simulated"

    @property
    def resumes(self) -> bool:
        """Whether something that was begun is gone on with."""
        return self.resume is not None or self.resume_failed

    @property
    def resumes_by_joblog(self) -> bool:
        """Whether a job log tells what was done, and not a journal."""
        return self.resumes and not self.resume and bool(self.joblog) and not self.journal
