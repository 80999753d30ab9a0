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
from simple_gpu_scheduler.system.leftovers import (
    PATIENCE,
    below,
    children,
    read_table,
    read_variable,
    server_among,
)
from simple_gpu_scheduler.system.marks import TREE
from simple_gpu_scheduler.system.processes import Tags, has_ended, reap
from simple_gpu_scheduler.system.threads import start_thread

_SHORT_PAUSE, _PAUSE, _LONG_PAUSE = 0.01, 0.1, 0.5
_EXECUTED_WITHIN = 5.0


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


class Traces(NamedTuple):
    """How processes of attempts of this run are recognised: by the mark or, below us, by the tag.

    Another run may use the same tags.
    """

    run_id: bytes
    keys: Mapping[int, Key] = {}  # by tag

    def more(self, numbers: Mapping[Key, int]) -> "Traces":
        """The same, for attempts that were started by messages with these numbers too."""
        tags = Tags()
        return self._replace(keys={**self.keys, **{tags.of(number): key for key, number in numbers.items()}})


def find_alive(traces: Traces) -> dict[Key, list[int]]:
    """The attempts of a run that have processes."""
    found: dict[Key, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            for key in _keys_in(read_variable(int(name), TREE), b"/%s." % traces.run_id):
                found.setdefault(key, []).append(int(name))
    if traces.keys:
        tags = Tags()
        for process in below(read_table(), os.getpid()):
            its_key = traces.keys.get(tags.read(process.pid))
            if its_key and not process.has_ended and not read_variable(process.pid, TREE):
                found.setdefault(its_key, []).append(process.pid)
    return found


def _keys_in(tree: bytes, prefix: bytes) -> list[Key]:
    found = []
    for each in tree.split(b"/"):
        job, _, attempt = each[len(prefix) - 1 :].partition(b".")
        if (b"/" + each).startswith(prefix) and job.isdigit() and attempt.isdigit():
            found.append((int(job), int(attempt)))
    return found


def watch(
    journal: str, start: int, traces: Traces, awaited: Mapping[Key, int], put: Callable[[SurvivorExited | Broken], None]
) -> None:
    """Put the end of each of these on the inbox. The journal was already read up to `start`.

    For one with a pid, a keeper will record the end; without a pid, nothing will.
    """

    def look() -> None:
        try:
            _watch(journal, start, traces, dict(awaited), put)
        except Exception as error:  # noqa: BLE001 - the loop raises it
            put(Broken(error))

    if awaited:
        start_thread(look)


def _watch(
    journal: str, offset: int, traces: Traces, left: dict[Key, int], put: Callable[[SurvivorExited | Broken], None]
) -> None:
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
    data = os.pread(fd, max(0, os.fstat(fd).st_size - offset), offset)
    contents = read_records(data)
    exits = [record for record in contents.records if record["event"] == "job exited"]
    return {(each["job"], each["attempt"]): each["status"] for each in exits}, offset + contents.size


def watch_orphans(traces: Traces, awaited: Collection[Key], put: Callable[[SurvivorExited | Broken], None]) -> None:
    """Put the end of each of these on the inbox: attempts whose keeper was killed, which made us their parent.

    What was just being started has neither a mark nor a tag until its program is loaded, and is waited for.
    """

    def look() -> None:
        try:
            until = time.monotonic() + _EXECUTED_WITHIN
            while _is_one_being_started() and time.monotonic() < until:
                time.sleep(_SHORT_PAUSE)
            _watch_orphans(_mains(traces), set(awaited), put)
        except Exception as error:  # noqa: BLE001 - the loop raises it
            put(Broken(error))

    if awaited:
        start_thread(look)


def _watch_orphans(mains: Mapping[Key, int], left: set[Key], put: Callable[[SurvivorExited | Broken], None]) -> None:
    while left:
        for key in sorted(left):
            if key not in mains or has_ended(mains[key]):
                left.remove(key)
                put(SurvivorExited(key, reap(mains[key]) if key in mains else None))
        time.sleep(_SHORT_PAUSE)


def _mains(traces: Traces) -> dict[Key, int]:
    """The main processes of attempts, which lead a session and are children of ours: of several, the oldest."""
    tags = Tags()
    leaders = [each for each in read_table().values() if each.parent == os.getpid() and each.session == each.pid]
    found: dict[Key, int] = {}
    for _, pid in sorted((each.born, each.pid) for each in leaders):
        keys = _keys_in(read_variable(pid, TREE), b"/%s." % traces.run_id)
        key = keys[0] if keys else traces.keys.get(tags.read(pid))
        if key:
            found.setdefault(key, pid)
    return found


def _is_one_being_started() -> bool:
    return any(_arguments(pid) == _arguments(os.getpid()) for pid in children(os.getpid()))


def _arguments(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            return file.read()
    except OSError:  # it has just ended
        return b""


def sweep(traces: Traces, exited: SurvivorExited, grace: float, put: Callable[[SurvivorExited | Broken], None]) -> bool:
    """Let a thread end what the attempt left behind, and put its settled end on the inbox; False if nothing is left.

    Processes that have lost the mark are found only below us, where they may have a tag.
    """
    if not find_alive(traces).get(exited.key):
        return False

    def act() -> None:
        try:
            left = _left_after_a_moment(traces, exited.key)
            server = server_among(left)
            if left:
                _end_all(traces, exited.key, time.monotonic() + grace)
            put(exited._replace(is_settled=True, swept=len(left), server=server))
        except Exception as error:  # noqa: BLE001 - the loop raises it
            put(Broken(error))

    with suppress(RuntimeError):  # no more threads can be started
        start_thread(act)
        return True
    return False


def _left_after_a_moment(traces: Traces, key: Key) -> Collection[int]:
    """The processes that do not end by themselves."""
    until = time.monotonic() + PATIENCE
    while (left := find_alive(traces).get(key, ())) and time.monotonic() < until:
        time.sleep(_PAUSE)
    return left


def _end_all(traces: Traces, key: Key, kill_at: float) -> None:
    end(traces, [key], force=False)
    while find_alive(traces).get(key):
        time.sleep(_PAUSE)
        if time.monotonic() >= kill_at:
            end(traces, [key], force=True)


def end(traces: Traces, keys: Collection[Key], *, force: bool) -> None:
    """Signal all processes of these attempts, also those that are not our children."""
    alive = find_alive(traces)
    for pid in [pid for key in keys for pid in alive.get(key, ())]:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL if force else signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
