"""The dry-run sink: prints on stdout what would run where. It does not know that nothing is run."""

import os

from simple_gpu_scheduler.events import Event, JobStarted

from .wording import show_gpus

_STDOUT = 1


class DryRun:
    """Writes `gpu 0: command`, the command's bytes as they are, for each job in the order of starting."""

    def take(self, event: Event, /) -> None:
        """Print a start."""
        if isinstance(event, JobStarted):
            line = b"%s: %s\n" % (show_gpus(event.attempt).encode(), event.attempt.job.command.strip())
            while line:
                line = line[os.write(_STDOUT, line) :]

    def close(self) -> None:
        """Nothing is held back."""
