"""What this user's runs tell: their journals, each part of which is read once, and what active runs answer.

A run that does not answer, since it is suspended for example, holds up nothing. What is made of it is in `families`.
"""

import os
import time

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Any, Callable, Iterable, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.gpus.looks import Inquiry
from simple_gpu_scheduler.journal import files, find
from simple_gpu_scheduler.journal.read import read_records
from simple_gpu_scheduler.remote.client import ask

from .families import JobGpu, SeenJob, SeenRun
from .totals import JobTotals, RunFold, figure

_AT_ONCE = 8 * 1024 * 1024
_MOMENT = 0.5  # seconds that all runs together may take to answer
_STALE = 5.0  # an answer that took longer is not how things are now

Status = Mapping[str, Any]
NamesOfGpu = Callable[[str], tuple[str, str]]  # its index and UUID, by what a run calls it


class ActiveRun(NamedTuple):
    """The journal of a run whose scheduler or keeper is running, and what it says so far."""

    journal: str
    fold: RunFold


class _Journal:
    """How far a journal was read."""

    def __init__(self, path: str, totals: JobTotals) -> None:
        self.path = path
        self.fold = RunFold(totals)
        self.is_active = False
        self._size = -1
        self._offset = 0

    def read(self) -> None:
        """Take in what is new. Nothing is asked of a journal that was over and has not grown."""
        try:
            size = os.stat(self.path).st_size
        except OSError:
            self.is_active = False
            return
        if size == self._size and not self.is_active:
            return
        self.is_active = files.is_active(self.path)  # before it is read, as in `find.look_at_records`
        if size != self._size:
            self._size = size
            with suppress(OSError, UserError):
                self._read_on()

    def _read_on(self) -> None:
        fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            files.check_own(fd, self.path)
            most = _AT_ONCE
            while data := os.pread(fd, most, self._offset):
                end = data.rfind(b"\n") + 1
                self._offset += end
                self.fold.feed(read_records(data[:end]).records)
                if len(data) < most:
                    return
                most = most if end else 2 * most
        finally:
            os.close(fd)


class Journals:
    """Those of this user. One that is deleted leaves what it added to the totals."""

    def __init__(self, totals: JobTotals) -> None:
        self._totals = totals
        self._known: dict[str, _Journal] = {}

    def read(self) -> list[ActiveRun]:
        """Take in what is new, and say which runs are active."""
        for path in find.all_runs():
            if path not in self._known:
                self._known[path] = _Journal(path, self._totals)
        for each in self._known.values():
            each.read()
        return [ActiveRun(each.path, each.fold) for each in self._known.values() if each.is_active]


class Statuses:
    """Asks active runs, each in a thread of its own and all at once."""

    def __init__(self) -> None:
        self._asked: dict[str, Inquiry[Status | None]] = {}

    def ask(self, journals: Iterable[str]) -> dict[str, Status]:
        """The status of each run that answers in a moment."""
        asked = {path: self._asked.get(path) or Inquiry(lambda path=path: _status(path)) for path in journals}  # type: ignore[misc]
        self._asked = dict(asked)
        end = time.monotonic() + _MOMENT
        answers: dict[str, Status] = {}
        for path, inquiry in asked.items():
            if inquiry.is_answered(end - time.monotonic()):
                del self._asked[path]
                status = inquiry.get()
                if status is not None and inquiry.age < _STALE:
                    answers[path] = status
        return answers


def _status(path: str) -> Status | None:
    try:
        return ask(path, {"do": "status"})
    except (UserError, OSError):
        return None


def seen_run(run: ActiveRun, status: Status | None, names_of: NamesOfGpu, now: float) -> SeenRun:
    """An active run, by its answer, or if there is none by its journal."""
    fold = run.fold
    seen = SeenRun(fold.run or files.run_of(run.journal), fold.began_at)
    if status is None:
        jobs = [
            SeenJob(job, each.attempt, each.at, *fold.texts(job), [JobGpu(*names_of(gpu)) for gpu in each.gpus])
            for job, each in fold.running.items()
        ]
        return seen._replace(jobs=jobs)
    counts = {str(state): count for state, count in _table(status.get("counts")).items() if type(count) is int}
    told = [_table(each) for each in _list(status.get("running"))]
    jobs = [_seen_job(each, fold, names_of, now) for each in told if type(each.get("job")) is int]
    return seen._replace(is_up=True, is_paused=bool(status.get("paused")), counts=counts, jobs=jobs)


def _seen_job(told: Status, fold: RunFold, names_of: NamesOfGpu, now: float) -> SeenJob:
    number = told["job"]
    name, label = fold.texts(number)
    uses = {str(use.get("gpu")): use for use in map(_table, _list(_table(told.get("measured")).get("gpus")))}
    shares = [share_of(*names_of(gpu), uses.get(gpu, {})) for gpu in map(str, _list(told.get("gpus")))]
    started = round(now - (figure(told.get("runtime")) or 0.0), 3)
    running = fold.running.get(number)
    attempt = told.get("attempt")
    if running and running.attempt == attempt:  # what the journal says does not waver
        started = running.at
    return SeenJob(
        number, attempt if type(attempt) is int else 0, started, str(told.get("name") or name), label, shares
    )


def share_of(gpu: str, uuid: str, use: Mapping[str, object]) -> JobGpu:
    """What a run's status says of a job's GPU, in `measured`; it may say less, and then so does this."""
    now = _table(use.get("now"))
    told = now.get("utilization"), now.get("memory"), _table(use.get("memory")).get("max"), use.get("energy")
    return JobGpu(gpu, uuid, *map(figure, (*told, use.get("idle"))))


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
