"""Gives metrics to others until a signal ends that: on sockets, in a file, in DCGM's job map.

One thread looks at the GPUs once a second; the main thread writes the files.
"""

import gc
import sys
import time
from contextlib import ExitStack
from functools import partial

from simple_gpu_scheduler.base.errors import BY_SIGNAL, Broken, UserError
from simple_gpu_scheduler.base.stdlib import Empty, signal, suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Callable, Iterable, NamedTuple, Sequence
from simple_gpu_scheduler.gpus.discover import Wants
from simple_gpu_scheduler.system.inbox import SystemInbox
from simple_gpu_scheduler.system.signals import Signalled, signals_to
from simple_gpu_scheduler.system.threads import need_thread

from .dcgm import JobMap, jobs_by_gpu
from .exporter import BEAT, Exporter
from .exposition import PROMETHEUS
from .serve import LOOPBACK, Listener, listen_at_path, listen_on_port
from .textfile import EVERY, TextFile


class MetricOutlets(NamedTuple):
    """Where the metrics go, if not to stdout; `every` is the seconds between two versions of the file."""

    port: int | None = None
    address: str = LOOPBACK
    unix: str | None = None
    textfile: str | None = None
    every: float = EVERY
    dcgm_job_map: str | None = None

    @property
    def are_none(self) -> bool:
        """Whether nobody does."""
        return self.port is None and not (self.unix or self.textfile or self.dcgm_job_map)


def print_once(wants: Wants) -> None:
    """Print the metrics as they are."""
    exporter = Exporter(wants)
    _say(exporter.remarks)
    exporter.look()
    sys.stdout.buffer.write(exporter.text(PROMETHEUS))


def give_to(outlets: MetricOutlets, wants: Wants) -> int:
    """Give them until a signal comes; the exit code. A UserError says what cannot be done, before anything starts."""
    inbox = SystemInbox()
    with ExitStack() as opened:
        listeners = _listeners(outlets)
        for listener in listeners:
            opened.callback(listener.close)
        text_file = TextFile(outlets.textfile) if outlets.textfile else None
        job_map = JobMap(outlets.dcgm_job_map) if outlets.dcgm_job_map else None
        exporter = Exporter(wants)
        _say(exporter.remarks)
        exporter.look()
        exporter.families()  # the first time takes longest, since each journal is read
        duties = []
        with signals_to(inbox.put):
            if text_file:
                opened.callback(text_file.close)
                text_file.write(exporter.text(PROMETHEUS))  # if it cannot be written, that is an error the first time
                duties.append(_Duty(outlets.every, _Writing(exporter, text_file).write))
            if job_map:
                opened.callback(job_map.close)
                duties.append(_Duty(BEAT, partial(_map_jobs, exporter, job_map)))
            gc.enable()  # which a program that soon ends does without
            need_thread(lambda: _look_on(exporter, inbox.put))
            for listener in listeners:
                listener.start(exporter.text, inbox.put)
            _say([f"serving {safe(listener.where)}" for listener in listeners])
            number = _do_until_signal(inbox, duties)
            opened.close()  # while a second Ctrl-C cannot come between
    return BY_SIGNAL + number


def _listeners(outlets: MetricOutlets) -> list[Listener]:
    found = []
    if outlets.port is not None:
        found.append(listen_on_port(outlets.port, outlets.address))
    if outlets.unix:
        found.append(listen_at_path(outlets.unix))
    return found


class _Duty:
    """What the main thread does again and again."""

    def __init__(self, every: float, do: Callable[[], object]) -> None:
        self._every = every
        self._do = do
        self.due = time.monotonic()

    def do(self) -> None:
        """Do it, and again after the pause."""
        self._do()
        self.due = time.monotonic() + self._every


class _Writing:
    """Writes the file. That it fails, as on a full disk, is said once, until it works again."""

    def __init__(self, exporter: Exporter, file: TextFile) -> None:
        self._exporter = exporter
        self._file = file
        self._problem = ""

    def write(self) -> None:
        """Write it."""
        problem = ""
        try:
            self._file.write(self._exporter.text(PROMETHEUS))
        except UserError as error:
            problem = str(error)
        if problem and problem != self._problem:
            _say([f"{problem}; it is tried again"])
        self._problem = problem


def _map_jobs(exporter: Exporter, job_map: JobMap) -> None:
    """Bring DCGM's job map up to date."""
    _say(job_map.write(jobs_by_gpu(exporter.active_runs(), exporter.name)))


def _do_until_signal(inbox: SystemInbox, duties: Sequence[_Duty]) -> int:
    """Do what is due, until a signal comes that ends a program; its number."""
    while True:
        for duty in duties:
            if time.monotonic() >= duty.due:
                duty.do()
        due = min([duty.due for duty in duties], default=None)
        try:
            message = inbox.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
        except Empty:
            continue
        if isinstance(message, Broken):
            raise message.error
        if isinstance(message, Signalled) and message.number != signal.SIGUSR1:
            return message.number


def _look_on(exporter: Exporter, put: Callable[[Broken], object]) -> None:
    try:
        while True:
            time.sleep(BEAT)
            exporter.look()
    except Exception as error:  # noqa: BLE001 - a bug, which the main thread raises
        put(Broken(error))


def _say(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        with suppress(OSError):  # stderr is closed, which changes nothing
            print(sentence, file=sys.stderr, flush=True)
