"""The journal of a run: starting it, its first record, and the sinks that append each event, and curves beside it.

So an event has been recorded before its consequences happen.
"""

import os
import time

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import NamedTuple, Protocol, Sequence
from simple_gpu_scheduler.events import CurvesDrawn, Event, RunBegan
from simple_gpu_scheduler.events.publisher import Sink
from simple_gpu_scheduler.system.files import is_remote, write_at_once
from simple_gpu_scheduler.system.leftovers import read_process

from . import VERSION, files
from .append import Appender, PatientAppender
from .records import encode


class Appends(Protocol):
    """Takes the lines."""

    def append(self, lines: bytes, /) -> None:
        """Write them."""

    def close(self) -> None:
        """No event follows."""


class Journal:
    """Writes events as lines."""

    name = "the journal"

    def __init__(self, appender: Appends) -> None:
        self._appender = appender

    def take(self, event: Event, /) -> None:
        """One event."""
        lines = encode(event, time.time())
        if lines:
            self._appender.append(lines.encode())

    def close(self) -> None:
        """No event follows."""
        self._appender.close()


class Samples:
    """Writes curves to the file beside the journal, which is made for the first of them."""

    def __init__(self, journal: str) -> None:
        self._path = files.samples_of(journal)
        self.name = f"the file of samples {self._path}"
        self._appender: Appender | None = None

    def take(self, event: Event, /) -> None:
        """One event."""
        if type(event) is not CurvesDrawn:
            return
        from . import samples  # noqa: PLC0415 - most runs end before there is a curve

        if self._appender is None:
            self._appender = Appender(samples.open_to_append(self._path), self.name)
        self._appender.append(samples.encode_curves(event))

    def close(self) -> None:
        """No event follows."""
        if self._appender:
            self._appender.close()


class Recording(NamedTuple):
    """An open journal of ours, what writes to it, and why there is none although there should be."""

    path: str = ""
    sinks: tuple[Sink, ...] = ()
    problem: str = ""

    def forget(self) -> None:
        """Delete it: nothing has happened."""
        if self.path:
            with suppress(OSError):
                os.unlink(self.path)


def continue_journal(path: str, fd: int) -> Recording:
    """Continue the journal of a resumed run, which is open and locked."""
    return Recording(path, _sinks(path, fd))


def start_journal(run_id: str, path: str | None) -> Recording:
    """A new one at `path`, or where this user's runs are kept. If none can be created there, jobs run anyway."""
    directory = files.runs_directory(os.environ)
    usual = os.path.join(directory, run_id + files.SUFFIX)
    if path:
        path = os.path.abspath(path)
        fd = _create_at(path)
        with suppress(OSError):  # so that it can be found by its run ID
            files.make_directory(directory)
            os.symlink(path, usual)
    else:
        try:
            files.make_directory(directory)
            fd = files.create(usual)
        except OSError as error:
            return Recording(problem=_problem(directory, error))
    files.lock(fd, files.SCHEDULER)
    return Recording(path or usual, _sinks(path or usual, fd))


def _sinks(path: str, fd: int) -> tuple[Sink, ...]:
    name = f"the journal {path}"
    if is_remote(path):
        return (Journal(PatientAppender(Appender(fd, name), name)),)
    return (Journal(Appender(fd, name, write_at_once)),)


def _problem(path: str, error: OSError) -> str:
    return (
        f"no journal can be kept in {path}: {error.strerror}; jobs run, but they are not recorded and cannot be "
        "resumed (to keep it elsewhere: --journal FILE; to keep none: --no-journal)"
    )


def _create_at(path: str) -> int:
    try:
        return files.create(path)
    except FileExistsError:
        raise UserError(f"--journal {path}: that file exists; name another, or resume that run: --resume") from None
    except OSError as error:
        raise UserError(f"--journal {path}: {error.strerror}") from None


def run_began(run_id: str, argv: Sequence[str], inputs: Sequence[dict[str, str]], *, is_resumed: bool) -> RunBegan:
    """The first record of the journal, and of each scheduler that resumes the run."""
    me = read_process(os.getpid())
    return RunBegan(
        run=run_id,
        version=VERSION,
        program=__version__,
        host=os.uname().nodename,
        boot=_boot_id(),
        pid=os.getpid(),
        born=me.born if me else 0,
        directory=os.getcwd(),
        argv=tuple(argv),
        inputs=list(inputs),
        is_resumed=is_resumed,
    )


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""
