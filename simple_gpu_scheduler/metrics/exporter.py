"""Gathers what is exported: looks at the GPUs, reads the journals, asks active runs. The only place with their state.

A thread may look at the GPUs again and again while others ask for the families: they get the last look, so that a
driver that hangs holds up nobody.
"""

import os
import threading
import time

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import NamedTuple, Sequence
from simple_gpu_scheduler.gpus import Device
from simple_gpu_scheduler.gpus.discover import PATIENCE, Machine, SilentDriverError, Wants, find_machine, open_nvml
from simple_gpu_scheduler.gpus.leases import LeaseError
from simple_gpu_scheduler.gpus.survey import GpuReport, Survey

from . import MetricFamily
from .exposition import TextFormat, expose
from .families import Seen, SeenGpu, SeenRun, families
from .gpu_counters import GpuCounters, GpuLook
from .runs import ActiveRun, Journals, Statuses, seen_run
from .totals import JobTotals

BEAT = 1.0  # seconds between looks
_FRESH = 0.5  # seconds for which runs are not asked again
_TRY_AGAIN = 10.0  # seconds after which a driver that did not work is tried again


class _Texts(NamedTuple):
    """What was gathered, and when."""

    at: float
    families: Sequence[MetricFamily]


class Exporter:
    """What this user may see of this machine."""

    def __init__(self, wants: Wants) -> None:
        """A UserError says what is wrong with the GPUs that were named; without a driver, runs are exported alone."""
        self._wants = wants
        self._totals = JobTotals()
        self._journals = Journals(self._totals)
        self._statuses = Statuses()
        self._gathering = threading.Lock()  # over the three above, and what was gathered
        self._gathered: _Texts | None = None
        self._counters = GpuCounters()
        self._lock = threading.Lock()  # over the counters, and what follows
        self._reports: list[GpuReport] = []
        self._answered: dict[str, float] = {}  # when the driver last did, by GPU
        self._names: dict[str, tuple[str, str]] = {}
        self._driver, self._has_nvml = "", False
        self._survey: Survey | None = None
        self._tried = time.monotonic()
        self.remarks = self._open()

    def _open(self) -> Sequence[str]:
        """Find the GPUs; what is to be said about that."""
        machine, problem = _find(self._wants)
        if machine is None:
            return [f"{problem}; only runs are exported"]
        survey = Survey(machine, self._wants, errors=True)
        with self._lock:
            self._survey = survey
            self._names = names_of_gpus(machine)
            self._has_nvml = machine.nvml is not None
            self._driver = machine.nvml.driver_version() if machine.nvml else ""
        return machine.remarks

    def look(self) -> None:
        """Look at the GPUs. Only one thread may; it takes as long as the driver does, but seconds at most."""
        if self._survey is None:
            self._try_again()
        if self._survey is None:
            return
        try:
            reports = self._survey.look()
        except LeaseError:  # of the directory, which may come back
            return
        looks = [self._look_of(report) for report in reports if not report.is_silent]
        with self._lock:
            self._reports = reports
            self._counters.feed(time.monotonic(), looks)
            now = time.time()
            self._answered.update({look.gpu: round(now, 3) for look in looks})

    def _try_again(self) -> None:
        if time.monotonic() - self._tried >= _TRY_AGAIN:
            with suppress(UserError):  # such as a machine file that was changed meanwhile; runs are exported on
                self._open()
            self._tried = time.monotonic()

    def _look_of(self, report: GpuReport) -> GpuLook:
        meters = report.meters
        gpu, uuid = self.name(report.gpu.id)
        return GpuLook(gpu, uuid, report.holder, meters.utilization, meters.throttled, meters.xids or ())

    def name(self, gpu: str) -> tuple[str, str]:
        """The index and the UUID of a GPU, by what a run calls it."""
        return self._names.get(gpu, (gpu, ""))

    def active_runs(self) -> list[ActiveRun]:
        """The active runs by their journals, which are read on."""
        with self._gathering:
            return self._journals.read()

    def text(self, text_format: TextFormat) -> bytes:
        """The exposition."""
        return expose(self.families(), text_format)

    def families(self) -> Sequence[MetricFamily]:
        """What is known now. Whoever asks meanwhile gets the same."""
        with self._gathering:
            if self._gathered and time.monotonic() - self._gathered.at < _FRESH:
                return self._gathered.families
            active = self._journals.read()
            answers = self._statuses.ask([run.journal for run in active])
            now = time.time()
            runs = [seen_run(run, answers.get(run.journal), self.name, now) for run in active]
            aside = {self.name(gpu)[0] for run in active for gpu in run.fold.aside}
            found = self._families(runs, aside)
            self._gathered = _Texts(time.monotonic(), found)
            return found

    def _families(self, runs: Sequence[SeenRun], aside: set[str]) -> Sequence[MetricFamily]:
        with self._lock:
            gpus = [self._seen(report, aside) for report in self._reports]
            return families(Seen(__version__, self._has_nvml, gpus, runs, self._totals, self._counters))

    def _seen(self, report: GpuReport, aside: set[str]) -> SeenGpu:
        gpu, uuid = self.name(report.gpu.id)
        state = state_of(report, is_aside=gpu in aside)
        at = self._answered.get(gpu)
        return SeenGpu(gpu, uuid, state, report.name, self._driver, report.holder, report.meters, at)


def _find(wants: Wants) -> tuple[Machine | None, str]:
    """The GPUs; or why there are none, if that is the driver's fault."""
    try:
        return find_machine(wants, os.environ), ""
    except SilentDriverError as error:
        return None, str(error)
    except UserError:
        nvml, problem = (None, "") if wants.names else open_nvml(PATIENCE)
        if nvml or not problem:
            raise
        return None, problem


def names_of_gpus(machine: Machine) -> dict[str, tuple[str, str]]:
    """The index and the UUID of each GPU, by whatever a run may call it."""
    devices: Sequence[Device] = machine.nvml.devices if machine.nvml else ()
    found = {gpu.id: (gpu.id, gpu.uuid) for gpu in machine.gpus}
    for each in (each for device in devices for each in (device, *device.instances)):
        found[each.number] = each.number, each.uuid
        if each.uuid:
            found[each.uuid] = each.number, each.uuid
    return found


def state_of(report: GpuReport, *, is_aside: bool) -> str:
    """The state of a GPU, in a word."""
    if report.is_silent:
        return "silent"
    if report.leased:
        return "leased"
    if report.reading.problem or report.unleasable:
        return "broken"
    if report.reason:
        return "occupied"
    return "aside" if is_aside else "free"
