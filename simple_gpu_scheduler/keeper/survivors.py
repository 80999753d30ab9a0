"""Waits for jobs that are still running after their scheduler died, and learns from their keeper how they end.

If the keeper was killed too, the exit code is lost, and all that can be seen is when the last process is gone. It looks
a few times per second, in a thread, as long as there is such a job. It does not know what follows from an end.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.jobs import Attempt, Key
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.read import read_records
from simple_gpu_scheduler.system.leftovers import PATIENCE, read_variable, server_among
from simple_gpu_scheduler.system.marks import TREE
from simple_gpu_scheduler.system.threads import start_thread

_PAUSE, _LONG_PAUSE = 0.1, 0.5


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


def mark_of(run_id: bytes, key: Key) -> bytes:
    """The mark of its processes, in `TREE`."""
    return b"/%s.%d.%d" % (run_id, *key)


def find_alive(run_id: bytes) -> dict[Key, list[int]]:
    """The attempts of a run that have processes."""
    found: dict[Key, list[int]] = {}
    prefix = b"/%s." % run_id
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        for each in read_variable(int(name), TREE).split(b"/"):
            job, _, attempt = each[len(prefix) - 1 :].partition(b".")
            if (b"/" + each).startswith(prefix) and job.isdigit() and attempt.isdigit():
                found.setdefault((int(job), int(attempt)), []).append(int(name))
    return found


def watch(
    journal: str, start: int, run_id: bytes, awaited: Mapping[Key, int], put: Callable[[SurvivorExited | Broken], None]
) -> None:
    """Put the end of each of these on the inbox. The journal was already read up to `start`.

    For one with a pid, a keeper will record the end; without a pid, nothing will.
    """

    def look() -> None:
        try:
            _watch(journal, start, run_id, dict(awaited), put)
        except Exception as error:  # noqa: BLE001 - the loop raises it
            put(Broken(error))

    if awaited:
        start_thread(look)


def _watch(
    journal: str, offset: int, run_id: bytes, left: dict[Key, int], put: Callable[[SurvivorExited | Broken], None]
) -> None:
    with files.opened(journal) as fd:
        while left:
            # Ask first: what a keeper wrote last is read below. Our own keeper records no end while we run.
            is_kept = files.is_kept(fd, but=os.getpid())
            kept = {key for key, pid in left.items() if pid and is_kept}
            is_alive = find_alive(run_id) if len(kept) < len(left) else {}
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


def sweep(run_id: bytes, exited: SurvivorExited, grace: float, put: Callable[[SurvivorExited | Broken], None]) -> bool:
    """Let a thread end what the attempt left behind, and put its settled end on the inbox; False if nothing is left.

    Processes that have lost the mark are not found: they are not our children.
    """
    if not find_alive(run_id).get(exited.key):
        return False

    def act() -> None:
        try:
            left = _left_after_a_moment(run_id, exited.key)
            server = server_among(left)
            if left:
                _end_all(run_id, exited.key, time.monotonic() + grace)
            put(exited._replace(is_settled=True, swept=len(left), server=server))
        except Exception as error:  # noqa: BLE001 - the loop raises it
            put(Broken(error))

    with suppress(RuntimeError):  # no more threads can be started
        start_thread(act)
        return True
    return False


def _left_after_a_moment(run_id: bytes, key: Key) -> Collection[int]:
    """The processes that do not end by themselves."""
    until = time.monotonic() + PATIENCE
    while (left := find_alive(run_id).get(key, ())) and time.monotonic() < until:
        time.sleep(_PAUSE)
    return left


def _end_all(run_id: bytes, key: Key, kill_at: float) -> None:
    end(run_id, [key], force=False)
    while find_alive(run_id).get(key):
        time.sleep(_PAUSE)
        if time.monotonic() >= kill_at:
            end(run_id, [key], force=True)


def end(run_id: bytes, keys: Collection[Key], *, force: bool) -> None:
    """Signal all processes of these attempts, also those that are not our children."""
    alive = find_alive(run_id)
    for pid in [pid for key in keys for pid in alive.get(key, ())]:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL if force else signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
