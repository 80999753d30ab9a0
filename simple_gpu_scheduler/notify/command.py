"""Runs the user's notifier once: its input, its time limit, and the message if it fails.

It knows neither when to notify, nor jobs.
"""

import errno
import fcntl
import os
import time
from io import FileIO

from simple_gpu_scheduler.base.jobs import outcome_of
from simple_gpu_scheduler.base.stdlib import signal
from simple_gpu_scheduler.base.text import show_outcome
from simple_gpu_scheduler.base.units import show_duration
from simple_gpu_scheduler.base.values import Callable, Mapping
from simple_gpu_scheduler.output.log_file import last_shown
from simple_gpu_scheduler.system import processes

from . import message
from .message import Notification

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_MOST_COMPLAINTS = 1024 * 1024  # what a notifier prints on stderr is kept in memory
_IF_TOO_LONG = 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.1


class Notifier:
    """A shell command that gets one notification at a time."""

    def __init__(self, command: str, shell: str, environment: Mapping[bytes, bytes]) -> None:
        # Only where it is needed, as with a job's command.
        guard = ("--",) if command[:1] in ("-", "+") else ()
        self._argv = [os.fsencode(word) for word in (shell, "-c", *guard, command)]
        self._starter = processes.Starter(message.environment(list(environment.items())))

    def tell(self, notification: Notification, due: Callable[[], float]) -> str:
        """Run it, until `due` at most, which may change meanwhile; a sentence if it failed."""
        try:
            with _memory() as stdin, _memory() as stderr, open(os.devnull, "wb") as nowhere:
                _fill(stdin.fileno(), message.document(notification))
                _bound(stderr.fileno())
                streams = (
                    (stdin.fileno(), _STDIN),
                    (nowhere.fileno(), _STDOUT),
                    (stderr.fileno(), _STDERR),
                )
                return self._run(notification, streams, due, lambda: _last_line(stderr.fileno()))
        except OSError as error:
            return f"cannot start the notifier with {os.fsdecode(self._argv[0])}: {error.strerror or error}"

    def _run(
        self,
        notification: Notification,
        streams: processes.Streams,
        due: Callable[[], float],
        last_line: Callable[[], str],
    ) -> str:
        began = time.monotonic()
        pid = self._start(notification, streams)
        is_late = not _wait(pid, due)
        if is_late:
            processes.send_signal(-pid, signal.SIGKILL)
            processes.wait_for_end(pid)
        outcome = outcome_of(processes.reap(pid))
        if outcome.kind == "succeeded":
            return ""
        how = f"was killed after {show_duration(time.monotonic() - began)}" if is_late else show_outcome(outcome)
        why = last_line()
        return f"the notifier {how}{': ' if why else ''}{why}"

    def _start(self, notification: Notification, streams: processes.Streams) -> int:
        try:
            return self._starter.start(self._argv, _pairs(notification), (), streams)
        except OSError as error:
            if error.errno != errno.E2BIG:
                raise
        # The whole environment has a limit too, which that of the user may nearly reach.
        return self._starter.start(self._argv, _pairs(notification, _IF_TOO_LONG), (), streams)


def _pairs(notification: Notification, longest: int = message.LONGEST) -> list[bytes]:
    return [b"%s=%s" % item for item in message.variables(notification, longest).items()]


def _wait(pid: int, due: Callable[[], float]) -> bool:
    """Whether it has ended in time."""
    pause = _FIRST_PAUSE
    while not processes.has_ended(pid):
        left = due() - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)
    return True


def _memory() -> FileIO:
    """A file without a name, private to us."""
    return FileIO(os.memfd_create("notification", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "r+")


def _fill(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
    os.lseek(fd, 0, os.SEEK_SET)


def _bound(fd: int) -> None:
    """Limit how much can be written to it."""
    os.ftruncate(fd, _MOST_COMPLAINTS)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)


def _last_line(fd: int) -> str:
    text = os.pread(fd, _MOST_COMPLAINTS, 0).rstrip(b"\0")
    return message.cut_text(last_shown(text.decode("utf-8", "backslashreplace")))
