"""The command line of a run as values: one for each section of --help, each defined by its room."""

from simple_gpu_scheduler.base.jobs import Patience
from simple_gpu_scheduler.base.values import NamedTuple, Sequence
from simple_gpu_scheduler.display import DisplayOptions
from simple_gpu_scheduler.engines import ENGINES
from simple_gpu_scheduler.gpus.discover import Wants
from simple_gpu_scheduler.inputs import InputOptions
from simple_gpu_scheduler.journal import RecordOptions
from simple_gpu_scheduler.notify import NotifyOptions
from simple_gpu_scheduler.output import OutputOptions
from simple_gpu_scheduler.resume import ResumeOptions
from simple_gpu_scheduler.scheduling.halt import Halt
from simple_gpu_scheduler.scheduling.policies.names import OrderOptions


class FailureOptions(NamedTuple):
    """The section "Failures and time limits" of --help; times are in seconds."""

    timeout: float | None = None
    stall: Patience | None = None
    idle: Patience | None = None
    grace: float = 10.0
    retries: int = 0
    retry_delay: float = 0.0
    halt: Halt | None = None
    quarantine: int = 0


class ExecutionOptions(NamedTuple):
    """The section "Execution" of --help."""

    shell: str
    chdir: str | None
    dry_run: bool
    engine: str

    @property
    def runs_nothing(self) -> bool:
        """Whether no process is started; then nothing is leased or recorded, and no notification is sent."""
        return self.dry_run or ENGINES[self.engine].runs_nothing


class Options(NamedTuple):
    """The command line of a run."""

    wants: Wants
    order: OrderOptions
    failures: FailureOptions
    input: InputOptions
    execution: ExecutionOptions
    display: DisplayOptions
    output: OutputOptions
    notify: NotifyOptions
    records: RecordOptions
    resume: ResumeOptions
    argv: Sequence[str]

    @property
    def keeps_journal(self) -> bool:
        """Whether the run is recorded in a journal."""
        return not (self.records.no_journal or self.execution.runs_nothing)

    @property
    def takes_samples(self) -> bool:
        """Whether it is measured what attempts do to GPUs and the CPU; without a journal, nobody could see it."""
        return self.keeps_journal and not self.records.no_samples

    @property
    def resumes_by_joblog(self) -> bool:
        """Whether a job log, not a journal, says what was done."""
        return self.resume.is_asked and not self.resume.run and bool(self.records.joblog) and not self.records.journal
