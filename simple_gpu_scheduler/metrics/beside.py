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


class metrics_file:  # noqa: N801 - said where it is entered: with metrics_file(path, wants)
    """Write FILE.prom again and again within it. That it cannot be written later takes nothing from the run."""

    def __init__(self, path: str, wants: Wants, every: float = EVERY) -> None:
        """A UserError says why it cannot be this file."""
        self._file = TextFile(path)
        self._wants = wants
        self._every = every
        self._is_over = Event()
        self._writing = Lock()

    def __enter__(self) -> None:
        self._write(
            [build_info(__version__)]
        )  # the GPUs may take seconds to answer, and what is wrong is to be said now
        need_thread(self._go_on)

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        with self._writing:
            self._file.close()

    def _go_on(self) -> None:
        try:
            exporter = Exporter(self._wants)
        except UserError:  # which the run meets as well, and says
            return
        due = time.monotonic()
        while not self._is_over.is_set():
            exporter.look()
            if time.monotonic() >= due:
                due = time.monotonic() + self._every
                with suppress(UserError):
                    self._write(exporter.families())
            self._is_over.wait(BEAT)

    def _write(self, families: Iterable[MetricFamily]) -> None:
        text = expose(families, PROMETHEUS)
        with self._writing:
            if not self._is_over.is_set():
                self._file.write(text)
