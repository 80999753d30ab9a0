"""The journal of a run that begins: where it is, and what stands first in it."""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.events import RunBegan
from simple_gpu_scheduler.events.publisher import Sink
from simple_gpu_scheduler.inputs.gather import Input
from simple_gpu_scheduler.journal import VERSION, files
from simple_gpu_scheduler.journal.append import Appender, PatientAppender
from simple_gpu_scheduler.journal.sink import Journal
from simple_gpu_scheduler.system.files import is_remote, write_at_once
from simple_gpu_scheduler.system.process_tree import read_process

if TYPE_CHECKING:
    from simple_gpu_scheduler.resume.find import Resumed


class Recording(NamedTuple):
    """A journal that is open and ours, and why there is none though there should be."""

    path: str = ""
    fd: int = -1
    problem: str = ""

    def sinks(self) -> list[Sink]:
        """What writes to it."""
        if self.fd < 0:
            return []
        name = f"the journal {self.path}"
        if is_remote(self.path):
            return [Journal(PatientAppender(Appender(self.fd, name), name))]
        return [Journal(Appender(self.fd, name, write_at_once))]

    def forget(self) -> None:
        """Delete it: nothing has happened."""
        if self.path:
            with suppress(OSError):
                os.unlink(self.path)


def begin(run_id: str, path: str | None, resumed: "Resumed | None") -> Recording:
    """The journal of a run that goes on; or a new one at `path`, or where this user's runs are kept.

    That there can be none there stops no job.
    """
    if resumed:
        return Recording(resumed.path, resumed.fd)
    directory = files.runs_directory(os.environ)
    usual = os.path.join(directory, run_id + files.SUFFIX)
    if path:
        path = os.path.abspath(path)
        fd = _create_at(path)
        with suppress(OSError):  # so that it is found by its run's id
            files.make_directory(directory)
            os.symlink(path, usual)
    else:
        try:
            files.make_directory(directory)
            fd = files.create(usual)
        except OSError as error:
            return Recording(problem=_problem(directory, error))
    files.lock(fd, files.SCHEDULER)
    return Recording(path or usual, fd)


def _problem(path: str, error: OSError) -> str:
    return (
        f"no journal can be kept in {path}: {error.strerror}; the jobs run, but what becomes of them is not recorded "
        "and cannot be resumed (--journal FILE puts it elsewhere, --no-journal does without)"
    )


def _create_at(path: str) -> int:
    try:
        return files.create(path)
    except FileExistsError:
        raise UserError(f"--journal {path}: there is such a file; name another, or go on with it: --resume") from None
    except OSError as error:
        raise UserError(f"--journal {path}: {error.strerror}") from None


def run_began(run_id: str, argv: Sequence[str], inputs: Sequence[Input], resumed: "Resumed | None") -> RunBegan:
    """What stands first in the journal."""
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
        inputs=[each._asdict() for each in inputs],
        is_resumed=resumed is not None,
    )


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
