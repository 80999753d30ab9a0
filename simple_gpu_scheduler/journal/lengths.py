"""How long jobs took in this user's earlier runs: reads the newest journals, as many as can be read in a moment."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.scheduling.estimates import Recalled
from simple_gpu_scheduler.simulation.workloads.past_runs import history_of

from . import files

# About a third of a second.
_MOST_BYTES = 32 * 2**20


def recall(environment: Mapping[str, str]) -> Recalled:
    """The journals that cannot be read tell nothing."""
    newest: list[tuple[str, int]] = []
    left = _MOST_BYTES
    for path in files.find_runs(files.runs_directory(environment)):
        with suppress(OSError):  # it was just deleted, or was put elsewhere and is gone
            newest.append((path, left))
            left -= os.stat(path).st_size
        if left <= 0:
            break
    return Recalled(history_of(_read(newest[::-1])))


def _read(parts: list[tuple[str, int]]) -> Iterator[bytes]:
    """One at a time, so that no more than one is kept."""
    for path, most in parts:
        with suppress(OSError, UserError):
            yield files.read(path, most)
