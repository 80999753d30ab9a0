"""Waits for attempts that outlived their scheduler or their keeper, and learns how they end.

If the scheduler died, its keeper records the ends. If the keeper was killed, we are the parent of what it ran. If both
were, the exit code is lost, and all that can be seen is when the last process is gone. It looks several times per
second, in a thread, as long as there is such an attempt. It does not know what follows from an end.
"""

import os
import time

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.jobs import Attempt, Key
from simple_gpu_scheduler.base.stdlib import signal, suppress
from simple_gpu_scheduler.base.values import Callable, Collection, Mapping, NamedTuple
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.read import read_records
from simple_gpu_scheduler.system import leftovers
from simple_gpu_scheduler.system.marks import TREE, attempts_in
from simple_gpu_scheduler.system.processes import HAS_TAGS, has_ended, reap, send_signal
from simple_gpu_scheduler.system.threads import start_thread

_SHORT_PAUSE, _PAUSE, _LONG_PAUSE = 0.01, 0.1, 0.5
_EXECUTED_WITHIN = 5.0
_GAP = 10_000  # more pids than are given within a tick of the clock


class Survivor(NamedTuple):
    """An attempt that was running when its scheduler died: its process, if known, and when it started.

    With a `status`, it ended at `ended_at`, and no scheduler has acted on that yet. `excused` is how many attempts of
    the job do not count.
    """

    attempt: Attempt
    pid: int
    began_at: float
    excused: int
    status: int | None = None
    log: str = ""
    ended_at: float | None = None


class SurvivorExited(NamedTuple):
    """The main process of such an attempt has ended, with this wait status if known.

    Once it is settled, nothing of the attempt is left; `swept` processes that it left behind were ended, among them
    the terminal multiplexer `server`, such as tmux.
    """

    key: Key
    status: int | None
    is_settled: bool = False
    swept: int = 0
    server: str = ""


Put = Callable[[SurvivorExited | Broken], None]


class Traces(NamedTuple):
    """How processes of attempts of this run are recognised: by the mark or, below us, by the tag.

    Another run may use the same tags.
    """

    run_id: bytes
    keys: Mapping[int, Key] = {}  # by tag, for attempts that were left to us


def find_alive(traces: Traces) -> dict[Key, list[int]]:
    """The attempts of a run that have processes."""
    found: dict[Key, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            for key in attempts_in(leftovers.read_variable(int(name), TREE), traces.run_id):
                found.setdefault(key, []).append(int(name))
    if traces.keys:
        table = leftovers.read_table()
        for child in [process for process in table.values() if process.parent == os.getpid()]:
            # Below it, a scheduler may have given tags of its own.
            if its_key := traces.keys.get(leftovers.read_tag(child.pid)):
                for process in leftovers.below(table, [child]):
                    if not process.has_ended and not leftovers.read_variable(process.pid, TREE):
                        found.setdefault(its_key, []).append(process.pid)
    return found


def watch(journal: str, start: int, traces: Traces, awaited: Mapping[Key, int], put: Put) -> None:
    """Put the end of each of these on the inbox. The journal was already read up to `start`.

    For one with a pid, a keeper will record the end; without a pid, nothing will.
    """
    if awaited:
        _in_thread(lambda: _watch(journal, start, traces, dict(awaited), put), put)


def _in_thread(work: Callable[[], object], put: Put) -> None:
    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the loop raises it
            put(Broken(error))

    start_thread(run)


def _watch(journal: str, offset: int, traces: Traces, left: dict[Key, int], put: Put) -> None:
    with files.opened(journal) as fd:
        while left:
            # Ask first: what a keeper wrote last is read below. Our own keeper records no end while we run.
            is_kept = files.is_kept(fd, but=os.getpid())
            kept = {key for key, pid in left.items() if pid and is_kept}
            is_alive = find_alive(traces) if len(kept) < len(left) else {}
            statuses, offset = _exits(fd, offset)
            for key in sorted(left):
                if key in statuses or not (key in kept or key in is_alive):
                    del left[key]
                    put(SurvivorExited(key, statuses.get(key)))
            if left:
                time.sleep(_PAUSE if len(kept) == len(left) else _LONG_PAUSE)


def _exits(fd: int, offset: int) -> tuple[Mapping[Key, int], int]:
    """What the keeper has recorded since."""
    contents = read_records(os.pread(fd, max(0, os.fstat(fd).st_size - offset), offset))
    exits = [record for record in contents.records if record["event"] == "job exited"]
    return {(each["job"], each["attempt"]): each["status"] for each in exits}, offset + contents.size


def watch_orphans(traces: Traces, awaited: Collection[Key], put: Put) -> None:
    """Put the end of each of these on the inbox: attempts whose keeper was killed, which made us their parent."""
    _in_thread(lambda: _watch_orphans(traces, set(awaited), put), put)


def _watch_orphans(traces: Traces, left: set[Key], put: Put) -> None:
    mains = _mains(traces)
    while left:
        for key in sorted(left):
            if key not in mains or has_ended(mains[key]):
                left.remove(key)
                put(SurvivorExited(key, reap(mains[key]) if key in mains else None))
        time.sleep(_SHORT_PAUSE)


def _mains(traces: Traces) -> dict[Key, int]:
    """The main processes of attempts, which are children of ours: of several, the oldest one that leads a session.

    Without tags there is only the mark, which can be read from when the program is loaded until it ends. So we look for
    some seconds, and only at leaders of sessions, since what a job leaves behind has its mark too.
    """
    me, found = os.getpid(), dict[Key, int]()
    until = time.monotonic() + (0 if HAS_TAGS else _EXECUTED_WITHIN)
    while True:
        ours = [each for each in leftovers.read_table().values() if each.parent == me]
        # The highest pid of each tick of the clock. One far below it is newer: pids began again within that tick.
        last = {each.born: each.pid for each in sorted(ours)}
        ours.sort(key=lambda each: (each.session != each.pid, each.born, last[each.born] - each.pid > _GAP, each.pid))
        for pid in [each.pid for each in ours if HAS_TAGS or each.session == each.pid]:
            keys = attempts_in(leftovers.read_variable(pid, TREE), traces.run_id)
            key = keys[0] if keys else traces.keys.get(leftovers.read_tag(pid))
            if key:
                found.setdefault(key, pid)
        if time.monotonic() >= until:
            return found
        time.sleep(_SHORT_PAUSE)


def sweep(traces: Traces, exited: SurvivorExited, grace: float, put: Put) -> bool:
    """Let a thread end what the attempt left behind, and put its settled end on the inbox; False if nothing is left.

    Processes that have lost the mark are found only below us, where they may have a tag.
    """

    def find() -> list[leftovers.Process]:
        pids = find_alive(traces).get(exited.key, ())
        return [process for pid in pids if (process := leftovers.read_process(pid)) and not process.has_ended]

    def act() -> None:
        swept = leftovers.end_all(find, grace)
        put(exited._replace(is_settled=True, swept=swept.ended, server=swept.server))

    if find():
        with suppress(RuntimeError):  # no more threads can be started
            _in_thread(act, put)
            return True
    return False


def end(traces: Traces, keys: Collection[Key], *, force: bool) -> None:
    """Signal all processes of these attempts, also those that are not our children."""
    alive = find_alive(traces)
    for pid in [pid for key in keys for pid in alive.get(key, ())]:
        send_signal(pid, signal.SIGKILL if force else signal.SIGTERM)
