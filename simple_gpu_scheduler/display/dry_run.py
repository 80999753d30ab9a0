"""The dry-run sink: prints on stdout what would run where. It does not know that nothing runs."""

from simple_gpu_scheduler.base.text import show_gpus
from simple_gpu_scheduler.events import Event, JobStarted
from simple_gpu_scheduler.system.writer import write_all

_STDOUT = 1


class DryRun:
    """Writes `gpu 0: command`, with the raw bytes of the command, for each job in order of starting."""

    def take(self, event: Event, /) -> None:
        """Print a start."""
        if isinstance(event, JobStarted):
            write_all(_STDOUT, b"%s: %s\n" % (show_gpus(event.attempt).encode(), event.attempt.job.command.strip()))

    def close(self) -> None:
        """Nothing is held back."""
