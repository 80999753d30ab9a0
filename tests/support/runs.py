"""Journals of runs that never ran."""

import os
from pathlib import Path

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.records import encode

HERE = os.uname().nodename
FIRST, SECOND, THIRD = "20261118-180219-2b4a4e", "20261118-180220-2b4b00", "20261119-090000-c0ffee"


def began(run: str, host: str = HERE, directory: str = "/work") -> events.RunBegan:
    return events.RunBegan(run, 1, "1.0", host, "", 1, 1, directory, (), ())


def job(number: int, command: bytes = b"true", **options) -> Job:
    return Job(number, command, Place(number), **options)


def ended(of: Job, outcome: Outcome = SUCCESS) -> tuple[events.JobStarted, events.JobEnded]:
    attempt = Attempt(of, 1, ("0",), (0,))
    return events.JobStarted(attempt), events.JobEnded(attempt, outcome, 1000.0, 2.5, True)


def journal_of(*happened: events.Event) -> bytes:
    return "".join(encode(event, 1000.0 + at) for at, event in enumerate(happened)).encode()


def write(run: str, *happened: events.Event, more: bytes = b"", **settings: str) -> Path:
    """A run of the past, with these events."""
    path = Path(files.runs_directory(os.environ), run + files.SUFFIX)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(journal_of(began(run, **settings), *happened) + more)
    return path


DONE = events.RunEnded(1, 0, 0, 0, 3.0, all_read=True)
