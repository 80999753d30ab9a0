"""Attempts as children, in a process of its own: collecting orphans is a setting of a whole process."""

import subprocess
import sys
import tempfile

PREPARE = """
import os, signal, threading
from queue import SimpleQueue
from simple_gpu_scheduler.engines.children import Children
from simple_gpu_scheduler.engines.protocol import Setting
from simple_gpu_scheduler.base.jobs import Attempt, Job, Outcome, Place
from simple_gpu_scheduler.gpus.leases import Hold
inbox = SimpleQueue()
def cmdline(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        return b""
def attempt(command, number=1):
    return Attempt(Job(number, command, Place(number)), 1, ("0",), (number,))
def engine(**options):
    return Children(Setting("run", None, None, inbox, environment=os.environb, **options), inbox.put)
"""


def run(script: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, "-c", PREPARE + script], check=True, timeout=120, cwd=directory)


def test_an_attempt_that_is_stopped_before_a_thread_came_to_it_is_not_started() -> None:
    run("""
subject = engine()
subject._work.put(lambda _launcher: (started.wait(), None)[1])  # keeps the thread that is about to come busy
started = threading.Event()
subject._threads, subject._busy = 0, 0
one = attempt(b"touch /tmp/never")
subject.stop(one, force=False)
subject.start(one, Hold())
started.set()
assert inbox.get() is None
ended = inbox.get(timeout=120)
assert ended.outcome == Outcome("not started", reason="it was stopped before it could start"), ended
assert subject.settle(ended)
assert not subject._told
subject.close()
""")


def test_a_stop_that_comes_while_the_process_is_being_started_ends_it() -> None:
    run("""
subject = engine()
start = subject._starter.start
def slow(*args):
    pid = start(*args)
    subject.stop(one, force=False)
    return pid
subject._starter.start = slow
one = attempt(b"exec sleep 1000")
subject.start(one, Hold())
assert inbox.get(timeout=120).outcome == Outcome("killed", signal.SIGTERM)
""")


def test_a_stop_of_what_has_ended_sends_no_signal() -> None:
    run("""
subject = engine()
one = attempt(b"true")
subject.start(one, Hold())
ended = inbox.get(timeout=120)
subject.stop(one, force=True)
assert subject.settle(ended)
""")


def test_what_cannot_be_started_is_reported() -> None:
    run("""
subject = engine(shell="/no/such/shell")
subject.start(attempt(b"true"), Hold())
assert inbox.get(timeout=120).outcome == Outcome("not started", reason="No such file or directory")
""")


def test_a_stopped_job_is_woken_to_be_ended() -> None:
    run("""
subject = engine()
one = attempt(b"kill -STOP $$; true")
subject.start(one, Hold())
pid = None
while pid is None:
    pid = subject._pids.get(one.key)
while open(f"/proc/{pid}/stat").read().rpartition(") ")[2][0] != "T":
    pass
subject.stop(one, force=False)
assert inbox.get(timeout=120).outcome == Outcome("killed", signal.SIGTERM)
""")


def test_threads_are_made_when_they_are_needed_and_used_again() -> None:
    run("""
subject = engine()
for number in range(20):
    subject.start(attempt(b"true", number), Hold())
    assert subject.settle(inbox.get(timeout=120))
assert subject._threads == 1
for number in range(3):
    subject.start(attempt(b"sleep 0.2", number), Hold())
assert subject._threads == 3
""")


def test_a_forced_stop_that_comes_while_the_process_is_being_started_kills_it() -> None:
    run("""
subject = engine()
start = subject._starter.start
def slow(*args):
    pid = start(*args)
    while not os.path.exists(f"/proc/{pid}/stat") or open(f"/proc/{pid}/stat").read().rpartition(") ")[2][0] != "S":
        pass
    subject.stop(one, force=True)
    return pid
subject._starter.start = slow
one = attempt(b"trap '' TERM; sleep 1000; sleep 1000")
subject.start(one, Hold())
assert inbox.get(timeout=120).outcome == Outcome("killed", signal.SIGKILL)
""")


def test_a_mark_is_found_among_those_of_schedulers_around_and_inside() -> None:
    run("""
subject = engine()
subject._marks[1] = (b"/run.3.1", 0)
def owner(tree):
    child = subject._starter.start((b"/bin/sleep", b"1000"), [b"SGS_TREE=" + tree])
    while b"sleep" not in open(f"/proc/{child}/cmdline", "rb").read():
        pass
    try:
        return subject._owner(child)
    finally:
        os.kill(child, 9)
assert owner(b"/run.3.1") == owner(b"/outer.1.1/run.3.1") == owner(b"/run.3.1/inner.9.9") == "running"
assert owner(b"/run.3.2") == owner(b"/run.31.1") == owner(b"/outer.1.1/run.2.1/inner.1.1") == "ended"
assert owner(b"") == owner(b"/other.3.1") == "unknown"
""")


def test_a_tag_stays_when_the_environment_is_cleared_and_is_found_in_descendants() -> None:
    run("""
from simple_gpu_scheduler.system.processes import Tags
subject = engine()
one = attempt(b"while [ ! -e tagged ]; do sleep 0.01; done; env -i sleep %d.25; true" % (1000 + os.getpid()))
subject.start(one, Hold())
while not subject._marks:
    pass
[(main, (_, tag))] = subject._marks.items()
assert 0 < tag == subject._tags.read(main) != subject._tags.put(os.getpid())
open("tagged", "w").close()
sleeps = []
mine = b"sleep\\0%d.25" % (1000 + os.getpid())
while not sleeps:
    sleeps = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and mine in cmdline(pid)]
assert [subject._owner(pid) for pid in sleeps] == ["running"]
subject._marks.clear()
assert subject._owner(sleeps[0]) == "ended"
os.kill(sleeps[0], 9)
assert Tags().read(1) == 0
os.unlink("tagged")
""")


def test_a_bug_in_a_thread_is_reported_and_not_waited_for() -> None:
    run("""
subject = engine()
subject._starter = None
subject.start(attempt(b"true"), Hold())
assert isinstance(inbox.get(timeout=120).error, AttributeError)
""")


def test_idle_threads_make_room_for_a_job_that_was_refused() -> None:
    run("""
subject = engine()
for number in range(5):
    subject.start(attempt(b"while [ ! -e go ]; do sleep 0.01; done", number), Hold())
open("go", "w").close()
for number in range(5):
    assert subject.settle(inbox.get(timeout=120))
start = subject._starter.start
def refuse(*args):
    raise BlockingIOError(11, "Resource temporarily unavailable")
subject._starter.start = refuse
subject.start(attempt(b"true"), Hold())
ended = inbox.get(timeout=120)
assert subject.settle(ended) and ended.is_refused
while threading.active_count() > 2:
    pass
subject._starter.start = start
subject.start(attempt(b"true"), Hold())
assert inbox.get(timeout=120).outcome.kind == "succeeded"
""")


def test_an_attempt_for_which_no_thread_can_be_started_is_refused() -> None:
    run("""
subject = engine()
Thread = threading.Thread
class Refused:
    def __init__(self, **_): pass
    def start(self): raise RuntimeError("can't start new thread")
threading.Thread = Refused
def is_refused():
    ended = inbox.get(timeout=120)
    assert subject.settle(ended)
    return ended.is_refused and ended.outcome.kind == "not started" and "ulimit -u" in ended.outcome.reason
subject.start(attempt(b"true"), Hold())
assert is_refused()
threading.Thread = Thread
subject.start(attempt(b"while [ ! -e go ]; do sleep 0.01; done", 1), Hold())
threading.Thread = Refused
subject.start(attempt(b"true", 2), Hold())
assert is_refused()
open("go", "w").close()
assert not is_refused()
subject.start(attempt(b"true", 2), Hold())
assert inbox.get(timeout=120).outcome.kind == "succeeded"
""")
