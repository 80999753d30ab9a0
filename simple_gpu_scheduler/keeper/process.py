"""The keeper's side: it does what the scheduler says, and tells how attempts end, or records that once it is alone.

It runs in its own process, created by fork. A thread that is told to start an attempt stays with it until it is over;
at least one more listens. The main thread does nothing: the kernel gives orphans to it.
"""

import errno
import os
import time

from simple_gpu_scheduler.base.stdlib import Event, Lock, deque, suppress
from simple_gpu_scheduler.base.values import Callable, NoReturn, Sequence
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.records import record
from simple_gpu_scheduler.system.processes import REFUSALS
from simple_gpu_scheduler.system.threads import Thread, start_thread

from . import messages
from .children import Children
from .connection import Socket, close_all, receive, room, send
from .intake import Intake
from .messages import AttemptEnded, Letter, Message, decode, encode, key_of


class Keeper:
    """Serves one scheduler, and stays after it for as long as its attempts run."""

    def __init__(self, control: Socket, environment: Sequence[bytes]) -> None:
        self._control = control
        self._children = Children(environment, self._tell)
        self._journal = -1
        self._intakes: list[Thread] = []
        self._sends = Lock()  # so that numbers arrive in order
        self._number = 0
        self._parting = Lock()  # taken once: by the thread that acts when the scheduler is gone
        self._lock = Lock()  # guards what is below
        self._idle = 1  # how many threads listen
        self._is_scarce = False  # whether the system has just refused a process or a thread
        self._unrecorded: deque[tuple[int, float, AttemptEnded]] = deque()
        self._is_alone = False

    def serve(self) -> None:
        """Serve the scheduler until it is gone, and then do what is left to do."""
        start_thread(lambda: _or_end(self._begin))
        Event().wait()

    def _begin(self) -> None:
        """Listen, once the scheduler is told that there is a thread that does.

        What a keeper was told that never said so is started again, so it says so before it can have started anything.
        """
        self._tell(messages.Ready())
        self._listen()

    def _listen(self) -> None:
        into = room()
        while received := receive(self._control, into):
            letter = decode(received.data)
            self._forget(letter.recorded)
            self._obey(letter, received.files)
            if self._is_scarce and self._makes_room():
                return
        with self._lock:
            self._idle -= 1
            is_last = not self._idle  # another may not have acted yet on what it received, such as the end of the run
        if is_last and self._parting.acquire(blocking=False):
            self._be_alone()

    def _run(self, number: int, start: messages.Start, descriptors: list[int] | None) -> None:
        """Run an attempt in this thread, while another one listens."""
        if self._listens_elsewhere():
            self._children.run(number, start, descriptors)
        else:
            close_all(descriptors or [])
            self._tell(AttemptEnded(start.attempt, errno=errno.EAGAIN))
        with self._lock:
            self._idle += 1
            if self._is_alone and self._children.are_idle:
                self._leave()

    def _listens_elsewhere(self) -> bool:
        """Whether another thread listens, or can be started."""
        with self._lock:
            self._idle -= 1
            if not self._idle:
                try:
                    start_thread(lambda: _or_end(self._listen))
                except RuntimeError:  # no more are allowed
                    return False
                self._idle += 1
        return True

    def _makes_room(self) -> bool:
        """Whether this thread is to end, since others listen: threads count against the limit on processes."""
        with self._lock:
            is_needed = self._idle == 1
            self._idle -= not is_needed
        return not is_needed

    def _obey(self, letter: Letter, descriptors: list[int] | None) -> None:
        message = letter.message
        if isinstance(message, messages.Start):
            self._run(letter.number, message, descriptors)
        elif isinstance(message, messages.Stop):
            self._children.stop(message, letter.recorded)
            self._tell(messages.Obeyed(message.attempt))
        elif isinstance(message, messages.TakeIn):
            self._take_in(message, descriptors or [])
        elif isinstance(message, messages.Serve):
            self._attend(message, descriptors or [])
        elif isinstance(message, messages.Finish):
            self._leave()

    def _attend(self, serve: messages.Serve, descriptors: list[int]) -> None:
        directory, *journal = descriptors
        os.fchdir(directory)
        os.close(directory)
        self._children.run_id = serve.run_id
        self._children.grace = float(serve.grace)
        if journal:
            self._journal = journal[0]
            files.lock(self._journal, files.keeper_of(serve.scheduler))

    def _take_in(self, wanted: messages.TakeIn, descriptors: list[int]) -> None:
        pipe, spool, notify = descriptors
        intake = Intake(pipe, spool, Socket(fileno=notify), wanted)
        try:
            self._intakes.append(start_thread(lambda: _or_end(intake.run)))
        except RuntimeError:  # no more threads are allowed; the scheduler notices that nobody answers, and does it
            close_all([pipe, spool])

    def _tell(self, message: Message) -> int:
        """Send it to the scheduler, or record it if there is none; its number."""
        with self._sends:
            self._number += 1
            number = self._number
            if isinstance(message, AttemptEnded):
                self._is_scarce = message.errno in REFUSALS
                with self._lock:
                    self._unrecorded.append((number, time.time(), message))
                    if self._is_alone:
                        self._record_ends()
            if not self._is_alone:
                with suppress(OSError):  # the scheduler has gone: the threads that listen notice it too
                    send(self._control, encode(Letter(number, 0, message)))
        return number

    def _forget(self, recorded: int) -> None:
        """The scheduler has recorded everything up to there."""
        if not self._unrecorded:
            return
        with self._lock:
            while self._unrecorded and self._unrecorded[0][0] <= recorded:
                self._children.forget(self._unrecorded.popleft()[2].attempt)

    def _be_alone(self) -> None:
        for thread in self._intakes:  # whatever resumes this run must find all that was read
            thread.join()
        left = self._children.close()
        with self._lock:
            running = [[*key_of(name), pid] for name, pid in left]
            self._write(record("keeper alone", time.time(), running=running))
            self._is_alone = True
            self._record_ends()
            if self._children.are_idle:
                self._leave()

    def _leave(self) -> NoReturn:
        for thread in self._intakes:
            thread.join()
        os._exit(0)

    def _record_ends(self) -> None:
        for _, at, ended in self._unrecorded:
            if not ended.errno:
                job, attempt = key_of(ended.attempt)
                self._write(record("job exited", at, job=job, attempt=attempt, status=ended.status))
        self._unrecorded.clear()

    def _write(self, line: str) -> None:
        """Write it, waiting as long as needed: a disk that is full now may not be tomorrow."""
        if self._journal < 0:
            return
        data = line.encode()
        while True:
            try:
                if os.write(self._journal, data) == len(data):
                    break
            except OSError:
                time.sleep(1)
            data = b"\n" + line.encode()


def _or_end(work: Callable[[], object]) -> None:
    """If a thread dies, end the keeper: the scheduler would wait for the thread, but can handle a dead keeper."""
    try:
        work()
    except BaseException:  # noqa: BLE001 - whatever it is
        os._exit(1)
