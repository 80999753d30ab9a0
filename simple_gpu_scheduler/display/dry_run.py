"""The dry-run sink: prints on stdout what would run where. It does not know that nothing is run."""

from simple_gpu_scheduler.base.text import show_gpus
from simple_gpu_scheduler.events import Event, JobStarted
from simple_gpu_scheduler.system.writer import write_all

_STDOUT = 1


class DryRun:
    """Writes `gpu 0: command`, the command's bytes as they are, for each job in the order of starting."""

    def take(self, event: Event, /) -> None:
        """Print a start."""
        if isinstance(event, JobStarted):
            write_all(_STDOUT, b"%s: %s\n" % (show_gpus(event.attempt).encode(), event.attempt.job.command.strip()))

    def close(self) -> None:
        """Nothing is held back."""
