"""The GPUs of a run, which may be known only some time after it was started: at boot, the NVIDIA driver comes late.

Meanwhile nothing can start, but the input is read, and the run can be stopped.
"""

import time

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.stdlib import Empty, Event, Lock
from simple_gpu_scheduler.base.values import Callable, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.gpus.discover import Machine, NotReadyError, Wants, find_machine
from simple_gpu_scheduler.remote.server import Asked
from simple_gpu_scheduler.run.state import Message
from simple_gpu_scheduler.system.signals import Signalled
from simple_gpu_scheduler.system.threads import Meanwhile, MessageQueue

# Seconds between two attempts to initialise NVML: from the first to the longest, doubling each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 4.0
_MOMENT = 1.0


class DriverNews(NamedTuple):
    """The driver works now, or what is wrong with it has changed."""


class MachineOfRun(Meanwhile[Machine]):
    """Finds the GPUs in a thread. With `is_patient` it waits for the driver, and `problem` says meanwhile why."""

    def __init__(self, wants: Wants, environment: Mapping[str, str], *, is_patient: bool) -> None:
        self.problem = ""
        self._wants, self._environment, self._is_patient = wants, environment, is_patient
        self._was_tried = Event()
        self._lock = Lock()  # over what follows
        self._news: Callable[[], object] | None = None
        super().__init__(self._find)

    def if_known(self) -> Machine | None:
        """The GPUs; None while the driver is waited for."""
        if self._thread:
            self._was_tried.wait()
        return None if self.problem else self.get()

    def tell(self, tell: Callable[[], object]) -> None:
        """Call this from now on when `problem` changes, and once at the beginning."""
        with self._lock:
            self._news = tell
            tell()

    def _find(self) -> Machine:
        try:
            pause = _FIRST_PAUSE
            while True:
                try:
                    return find_machine(self._wants, self._environment, is_patient=self._is_patient)
                except NotReadyError as error:
                    self._change(str(error))
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            self._change("")

    def _change(self, problem: str) -> None:
        with self._lock:
            if problem != self.problem:
                self.problem = problem
                if self._news:
                    self._news()
            self._was_tried.set()


def wait_for_driver(
    machine: MachineOfRun,
    names: Sequence[str],
    inbox: "MessageQueue[Message | DriverNews]",
    publish: Callable[[events.Event], object],
) -> list[Message]:
    """Wait until the GPUs are known, or the run is stopped; returns the messages that came meanwhile, for the loop."""
    if machine.if_known():
        return []
    machine.tell(lambda: inbox.put(DriverNews()))
    came: list[Message] = []
    said, until = "", time.monotonic() + _MOMENT
    while problem := machine.problem:
        left = until - time.monotonic()
        if left <= 0 and problem != said:
            publish(events.Waited([Wait(",".join(names) or "all", problem, problem)]))
            said = problem
        try:
            message = inbox.get(timeout=None if said else max(0.0, left))
        except Empty:
            continue
        if isinstance(message, Asked) and message.request.get("do") != "stop":
            _refuse(message, problem)
        elif not isinstance(message, DriverNews):
            came.append(message)
            if isinstance(message, Asked | Broken) or (isinstance(message, Signalled) and message.stops):
                break
    if said:
        publish(events.Waited(()))
    return came


def _refuse(asked: Asked, problem: str) -> None:
    asked.take()
    asked.reply(
        {"error": f"the run is waiting for the NVIDIA driver: {problem}; until it works, the run can only be stopped"}
    )
