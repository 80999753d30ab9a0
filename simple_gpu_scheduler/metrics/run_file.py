"""The file of metrics that is written while a run lasts, by a thread beside its loop."""

import time

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import Event, Lock, suppress
from simple_gpu_scheduler.base.values import Iterable
from simple_gpu_scheduler.gpus.discover import Wants
from simple_gpu_scheduler.system.threads import need_thread

from . import MetricFamily
from .exporter import BEAT, Exporter
from .exposition import PROMETHEUS, expose
from .families import build_info
from .textfile import EVERY, TextFile


class RunFile:
    """Within it, FILE.prom is written again and again. If that fails later, the run continues without it."""

    def __init__(self, path: str, wants: Wants) -> None:
        """A UserError says why it cannot be this file."""
        self._file = TextFile(path)
        self._wants = wants
        self._is_over = Event()
        self._writing = Lock()

    def __enter__(self) -> None:
        # The GPUs may take seconds to answer, and what is wrong with the file must be said now.
        self._write([build_info(__version__)])
        need_thread(self._keep_writing)

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        with self._writing:
            self._file.close()

    def _keep_writing(self) -> None:
        try:
            exporter = Exporter(self._wants)
        except UserError:  # the run meets it as well, and reports it
            return
        due = time.monotonic()
        while not self._is_over.is_set():
            exporter.look()
            if time.monotonic() >= due:
                due = time.monotonic() + EVERY
                with suppress(UserError):
                    self._write(exporter.families())
            self._is_over.wait(BEAT)

    def _write(self, families: Iterable[MetricFamily]) -> None:
        text = expose(families, PROMETHEUS)
        with self._writing:
            if not self._is_over.is_set():
                self._file.write(text)
