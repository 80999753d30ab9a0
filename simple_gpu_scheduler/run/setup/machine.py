"""The GPUs of a run, which may be known only some time after it was started: at boot, the NVIDIA driver comes late.

Meanwhile nothing can start, but the input is read, and the run can be stopped.
"""

import time

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.stdlib import Empty, Event, Lock, suppress
from simple_gpu_scheduler.base.values import Callable, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.gpus import SILENCE
from simple_gpu_scheduler.gpus.discover import Machine, NotReadyError, Wants, find_machine
from simple_gpu_scheduler.remote.server import Asked
from simple_gpu_scheduler.run.state import Message
from simple_gpu_scheduler.system.inbox import SystemInbox
from simple_gpu_scheduler.system.signals import Signalled
from simple_gpu_scheduler.system.threads import Meanwhile

# Seconds between two attempts to initialise NVML: from the first to the longest, doubling each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 4.0
_MOMENT = 1.0
_SILENT = "the NVIDIA driver does not answer"


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

    @property
    def is_waited_for(self) -> bool:
        """Whether a thread still asks the driver."""
        return bool(self._thread) and (self.problem != "" or not self._was_tried.is_set())

    def if_known(self) -> Machine | None:
        """The GPUs; None while the driver is waited for."""
        if self._thread and not self._was_tried.wait(SILENCE):
            self.give_up()
        return None if self.problem else self.get()

    def give_up(self) -> None:
        """Wait no longer for the driver's first answer, if it has not come: it counts as one that does not work yet."""
        with self._lock:
            if not self._was_tried.is_set():
                self._change(_SILENT)

    def tell(self, tell: Callable[[], object] | None) -> None:
        """Call this from now on when `problem` changes."""
        with self._lock:
            self._news = tell

    def _find(self) -> Machine:
        try:
            pause = _FIRST_PAUSE
            while True:
                try:
                    return find_machine(self._wants, self._environment, is_patient=self._is_patient)
                except NotReadyError as error:
                    with self._lock:
                        self._change(str(error))
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            with self._lock:
                self._change("")

    def _change(self, problem: str) -> None:
        is_news = problem != self.problem or not self._was_tried.is_set()
        self.problem = problem
        self._was_tried.set()
        if is_news and self._news:
            self._news()


def wait_for_driver(
    machine: MachineOfRun,
    names: Sequence[str],
    inbox: SystemInbox,
    publish: Callable[[events.Event], object],
) -> list[Message]:
    """Wait until the GPUs are known, or the run is stopped; returns the messages that came meanwhile, for the loop."""
    machine.tell(lambda: inbox.put(DriverNews()))
    came: list[Message] = []
    said, began = "", time.monotonic()
    while machine.is_waited_for and not any(map(_stops, came)):
        problem = machine.problem
        left = began + (SILENCE if problem == _SILENT else _MOMENT) - time.monotonic()
        if left <= 0 and not problem:
            machine.give_up()
            continue
        if left <= 0 and problem != said:
            publish(events.Waited([Wait(",".join(names) or "all", problem, problem)]))
            said = problem
        with suppress(Empty):
            came += _news(inbox.get(timeout=None if said else max(0.0, left)))
        if problem:
            came = _without_requests(came, problem)
    machine.give_up()
    machine.tell(None)
    if said:
        publish(events.Waited(()))
    return came + _rest(inbox)


def _news(message: "Message | DriverNews") -> list[Message]:
    return [] if isinstance(message, DriverNews) else [message]


def _rest(inbox: SystemInbox) -> list[Message]:
    found: list[Message] = []
    with suppress(Empty):
        while True:
            found += _news(inbox.get(block=False))
    return found


def _without_requests(came: Sequence[Message], problem: str) -> list[Message]:
    """Refuse all but that to stop."""
    kept = []
    for each in came:
        if isinstance(each, Asked) and not _stops(each):
            _refuse(each, problem)
        else:
            kept.append(each)
    return kept


def _stops(message: Message) -> bool:
    if isinstance(message, Asked):
        return bool(message.request.get("do") == "stop")
    return isinstance(message, Broken) or (isinstance(message, Signalled) and message.stops)


def _refuse(asked: Asked, problem: str) -> None:
    asked.take()
    asked.reply(
        {"error": f"the run is waiting for the NVIDIA driver: {problem}; until it works, the run can only be stopped"}
    )
