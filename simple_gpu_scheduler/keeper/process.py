"""The keeper's side: it starts jobs, learns how they end, and records that once the scheduler is gone.

It runs in its own process, created by fork. It knows attempts only by number.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.records import record
from simple_gpu_scheduler.system import processes
from simple_gpu_scheduler.system.threads import start_thread

from .intake import Intake, PipeKind
from .messages import Message, Socket, close_all, receive, room, send

_ABOUT_A_START = 0.001


class Keeper:
    """Serves one scheduler, and stays after it for as long as its jobs run."""

    def __init__(self, control: Socket, environment: Sequence[bytes]) -> None:
        self._control = control
        self._starter = processes.Starter(environment)
        self._journal = -1
        self._threads: list[threading.Thread] = []
        self._intakes: list[threading.Thread] = []
        self._lock = threading.Lock()  # guards the three below
        self._running: dict[Key, int] = {}
        # Wait status, time and pid of those that the scheduler has not said to be in the journal; it may still signal
        # them, so they are not reaped.
        self._ended: dict[Key, tuple[int, float, int]] = {}
        self._is_alone = False

    def serve(self) -> None:
        """Serve the scheduler until it is gone, and then do what is left to do."""
        while (message := receive(self._control)) is not None:
            kind, *fields = message.fields
            if kind == b"journal":
                self._journal = message.files[0]
                files.lock(self._journal, files.keeper_of(int(fields[0])))
            elif kind == b"enter":
                os.fchdir(message.files[0])
                close_all(message.files)
            elif kind == b"connect":
                self._start_thread(message.files[0])
            elif kind == b"recorded":
                self._let_go(fields[0])
            elif kind == b"intake":
                self._take_in(fields, message.files)
            else:  # the scheduler has finished, and everything is in the journal
                break
        else:
            for thread in self._intakes:  # whatever resumes this run must find all that was read
                thread.join()
            self._be_alone()
        for thread in (*self._intakes, *self._threads):
            thread.join()

    def _start_thread(self, fd: int) -> None:
        connection = Socket(fileno=fd)
        try:
            thread = start_thread(lambda: _or_end(lambda: self._serve_thread(connection)))
        except RuntimeError:  # no more threads are allowed now
            _tell(connection, b"refused")
            return
        self._threads.append(thread)
        _tell(connection, b"ready")

    def _take_in(self, fields: list[bytes], descriptors: list[int]) -> None:
        pipe, spool, notify = descriptors
        granted, is_named, holds, by_null = (int(field) for field in fields)
        kind = PipeKind(bool(is_named), bool(holds), b"\0" if by_null else b"\n")
        intake = Intake(pipe, spool, Socket(fileno=notify), granted, kind)
        try:
            self._intakes.append(start_thread(lambda: _or_end(intake.run)))
        except RuntimeError:  # no more threads are allowed; the scheduler notices that nobody answers, and does it
            close_all([pipe, spool])

    def _serve_thread(self, connection: Socket) -> None:
        into = room()
        while True:
            try:
                message = receive(connection, into)
            except OSError as error:
                _tell(connection, b"failed", b"%d" % (error.errno or 0))
                continue
            if message is None:
                return
            self._run(connection, message)

    def _run(self, connection: Socket, message: Message) -> None:
        _, numbers, recorded, streams, words, *rest = message.fields
        key = _key(numbers)
        self._let_go(recorded)
        with self._lock:
            if self._is_alone:  # jobs not started by now are never started
                close_all(message.files)
                return
            self._running[key] = 0
        argv, own = rest[: int(words)], rest[int(words) :]
        leases = message.files[len(streams) :]
        outputs = tuple(zip(message.files, map(int, streams.decode()), strict=False))
        try:
            pid = self._starter.start(argv, own, tuple(leases), outputs)
        except OSError as error:
            self._forget(key)
            _tell(connection, b"failed", b"%d" % (error.errno or 0))
            return
        finally:
            close_all(message.files)
        with self._lock:
            self._running[key] = pid
        _tell(connection, b"pid", b"%d" % pid)
        self._see_end(connection, key, pid)

    def _see_end(self, connection: Socket, key: Key, pid: int) -> None:
        status = processes.wait_for_end(pid)
        with self._lock:
            del self._running[key]
            self._ended[key] = status, time.time(), pid
            if self._is_alone:
                self._write_ends()
        _tell(connection, b"ended", b"%d" % status)

    def _let_go(self, recorded: bytes) -> None:
        """The ends of these are in the journal, and their pids will not be signalled any more."""
        with self._lock:
            for key in recorded.split():
                ended = self._ended.pop(_key(key), None)
                if ended:  # else it did not start
                    processes.reap(ended[2])

    def _forget(self, key: Key) -> None:
        with self._lock:
            del self._running[key]

    def _be_alone(self) -> None:
        with self._lock:
            self._is_alone = True
        while 0 in self._running.values():  # is just being started
            time.sleep(_ABOUT_A_START)
        with self._lock:
            running = [[*key, pid] for key, pid in self._running.items()]
            self._write(record("keeper alone", time.time(), running=running))
            self._write_ends()

    def _write_ends(self) -> None:
        for (job, attempt), (status, at, pid) in self._ended.items():
            self._write(record("job exited", at, job=job, attempt=attempt, status=status))
            processes.reap(pid)
        self._ended.clear()

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


def _key(numbers: bytes) -> Key:
    job, attempt = numbers.split(b".")
    return int(job), int(attempt)


def _tell(connection: Socket, *fields: bytes) -> None:
    try:
        send(connection, *fields)
    except OSError:  # the scheduler has gone; the control connection tells the same
        return
