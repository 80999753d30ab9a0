"""Finding a run to resume, what is left of it, and which of its jobs are still running."""

from simple_gpu_scheduler.base.values import NamedTuple


class ResumeOptions(NamedTuple):
    """The section "Resume" of --help. `run` is empty for the one that is found in this directory."""

    run: str | None = None
    failed_too: bool = False

    @property
    def is_asked(self) -> bool:
        """Whether a run is to be resumed."""
        return self.run is not None or self.failed_too
