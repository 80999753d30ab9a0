"""Attempts as children, in a process of its own: collecting orphans is a setting of a whole process."""

import subprocess
import sys
import tempfile

import pytest

PREPARE = """
import errno, os, signal, threading
from queue import SimpleQueue
from simple_gpu_scheduler.keeper import children
from simple_gpu_scheduler.keeper.children import Children, _Child
from simple_gpu_scheduler.keeper.messages import PID, BeyondUs, AttemptEnded, MainExited, Start, Stop
from simple_gpu_scheduler.system import leftovers, processes
from simple_gpu_scheduler.system.threads import start_thread
processes.adopt_orphans()
told = SimpleQueue()
number = 0
def tell(message):
    global number
    number += 1
    told.put(message)
    return number
def make():
    made = Children([b"%s=%s" % each for each in os.environb.items()], tell)
    made.run_id, made.grace = b"run", 10.0
    return made
subject = make()
def message(command, job=1, **more):
    name = b"%d.1" % job
    return Start(name, (b"/bin/sh", b"-c", command), (b"SGS_TREE=/run." + name,), **more)
def run_in_thread(*args):  # as always: to the main one the kernel gives orphans
    return start_thread(lambda: subject.run(*args))
def start(command, job=1, number=1, files=()):
    return run_in_thread(number, message(command, job), files)
def run(*args):
    run_in_thread(*args).join(120)
def cmdline(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        return b""
def state(pid):
    return open(f"/proc/{pid}/stat").read().rpartition(") ")[2][0]
def is_closed(fd):
    try:
        os.fstat(fd)
    except OSError:
        return True
def main(job=1):
    while not ((child := subject._unfinished.get(b"%d.1" % job)) and child.pid):
        pass
    return child.pid
def until_idle():
    while not subject.are_idle:
        pass
def ended(kind=AttemptEnded):
    message = told.get(timeout=120)
    assert isinstance(message, kind), message
    return message
TERM, KILL = Stop(b"1.1", 0), Stop(b"1.1", 1)
"""


def run(script: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, "-c", PREPARE + script], check=True, timeout=120, cwd=directory)


def test_an_attempt_that_is_stopped_before_it_starts_is_not_started() -> None:
    run("""
subject.stop(TERM, 0)
run(1, message(b"touch never"), ())
assert ended() == AttemptEnded(b"1.1", errno=errno.ECANCELED)
assert not os.path.exists("never")
assert subject.are_idle and not subject._told
""")


def stop_while_starting(stop: str, command: str, number: str) -> None:
    run(f"""
start = subject._starter.start
def slow(*args):
    pid = start(*args)
    while state(pid) != "S":
        pass
    subject.stop({stop}, 0)
    return pid
subject._starter.start = slow
run(1, message({command!r}.encode()), ())
while isinstance(last := told.get(timeout=120), MainExited):  # a child of it may have been left
    pass
assert (last.status, last.was_told) == ({number}, 1), last
""")


def test_a_stop_that_comes_while_the_process_is_being_started_ends_it() -> None:
    stop_while_starting("TERM", "exec sleep 1000", "signal.SIGTERM")


def test_a_forced_stop_that_comes_while_the_process_is_being_started_kills_it() -> None:
    stop_while_starting("KILL", "trap '' TERM; sleep 1000; sleep 1000", "signal.SIGKILL")


def test_a_stop_of_what_has_ended_sends_no_signal_and_is_forgotten() -> None:
    run("""
run(1, message(b"true"), ())
assert ended() == AttemptEnded(b"1.1")
processes.send_signal = None
subject.stop(KILL, number)
subject.forget(b"1.1")
assert not subject._told
""")


def test_what_cannot_be_started_is_reported_and_keeps_nothing_else_from_starting() -> None:
    run("""
run(1, Start(b"1.1", (b"/no/such/shell", b"-c", b"true"), (b"SGS_TREE=/run.1.1",)), ())
assert ended() == AttemptEnded(b"1.1", errno=errno.ENOENT)
run(2, message(b"true", 2), None)
assert ended() == AttemptEnded(b"2.1", errno=errno.EMFILE)
run(3, message(b"true", 3), ())
assert ended() == AttemptEnded(b"3.1")
assert subject.are_idle
""")


def test_descriptors_are_closed_whether_it_starts_or_not() -> None:
    run("""
for attempt in (message(b"true", streams=b"1"), message(b"true", streams=b"1")._replace(argv=(b"/none",))):
    fd = os.open(os.devnull, os.O_WRONLY)
    run(1, attempt, [fd])
    ended()
    assert is_closed(fd)
""")


def test_a_stopped_job_is_woken_to_be_ended() -> None:
    run("""
start(b"kill -STOP $$; true")
pid = main()
while state(pid) != "T":
    pass
subject.stop(TERM, 0)
assert ended().status == signal.SIGTERM
""")


def test_a_start_that_is_known_does_nothing() -> None:
    run("""
start(b"echo >> ran; until [ -e go ]; do sleep 0.01; done")
main()
fd = os.open(os.devnull, os.O_WRONLY)
run(1, message(b"touch never"), [fd])
assert told.empty() and is_closed(fd)
open("go", "w").close()
assert ended() == AttemptEnded(b"1.1")
assert os.path.getsize("ran") == 1 and not os.path.exists("never")
""")


def test_a_process_that_has_ended_stays_until_that_was_told() -> None:
    run("""
states = []
subject._tell = lambda message: states.append(state(main())) or tell(message)
run(1, message(b"exit 7"), ())
assert (ended(), states) == (AttemptEnded(b"1.1", 7 << 8), ["Z"])
assert not open("/proc/thread-self/children").read()
""")


def test_one_that_is_closed_starts_no_more_and_names_what_runs() -> None:
    run("""
start(b"until [ -e go ]; do sleep 0.01; done")
pid = main()
assert subject.close() == [(b"1.1", pid)]
run(2, message(b"touch never", 2), ())
assert told.empty() and not subject.are_idle
open("go", "w").close()
assert ended() == AttemptEnded(b"1.1")
until_idle()
assert subject.close() == [] and not os.path.exists("never")
""")


def test_closing_waits_for_what_is_just_being_started() -> None:
    run("""
start_it, began, may = subject._starter.start, threading.Event(), threading.Event()
def slow(*args):
    began.set()
    may.wait()
    return start_it(*args)
subject._starter.start = slow
start(b"exec sleep 1000")
began.wait()
left = []
closing = start_thread(lambda: left.extend(subject.close()))
while not subject._is_closed:
    pass
assert not left
may.set()
closing.join(120)
assert left == [(b"1.1", main())]
subject.stop(KILL, 0)
assert ended().status == signal.SIGKILL
""")


LEFT = """
start(b"python3 -c 'import os, signal; signal.signal(15, signal.SIG_IGN); os.fork() and os._exit(0); os.setsid();"
      b' open("daemon", "w"); signal.pause()' b"'; until [ -e daemon ]; do sleep 0.01; done")
exited = ended(MainExited)
knows = number
"""


def test_a_late_kill_does_not_hurry_what_ends_leftovers_unless_its_sender_knew_of_them() -> None:
    run(
        LEFT
        + """
subject.stop(KILL, knows - 1)
assert not subject._unfinished[b"1.1"].told
subject.stop(KILL, knows)
assert subject._unfinished[b"1.1"].told == signal.SIGKILL
last = ended()
assert (last.status, last.swept, last.was_told) == (0, 1, 0), last
until_idle()
assert not subject._told
"""
    )


UNLISTED = """
processes._list_of = lambda _thread: -1
subject = make()
assert subject._orphans.alive() is None
"""


def test_where_the_kernel_lists_no_children_a_process_that_has_ended_stays_until_that_was_told() -> None:
    run(
        UNLISTED
        + """
may, tell_at_once = threading.Event(), subject._tell
def tell_late(message):
    if message.attempt == b"1.1":
        told.put(message)
        may.wait()
    return tell_at_once(message)
subject._tell = tell_late
threading.excepthook = lambda _: os._exit(1)
first = start(b"exit 1")
assert ended() == AttemptEnded(b"1.1", 1 << 8)
run(2, message(b"exit 2", 2), ())
assert ended() == AttemptEnded(b"2.1", 2 << 8)
may.set()
assert ended() == AttemptEnded(b"1.1", 1 << 8)
first.join(120)
"""
    )


def test_where_the_kernel_lists_no_children_leftovers_are_ended_too() -> None:
    run(
        UNLISTED
        + """
subject.grace = 0.1
"""
        + LEFT
        + """
assert ended().swept == 1
until_idle()
run(9, message(b"true", 9), ())
assert ended() == AttemptEnded(b"9.1")
"""
    )


def test_a_mark_is_found_among_those_of_schedulers_around_and_inside() -> None:
    run("""
subject._unfinished[b"3.1"] = child = _Child(b"3.1", 0)
child.pid = 1
def owner(tree):
    child = subject._starter.start((b"/bin/sleep", b"1000"), [b"SGS_TREE=" + tree])
    while b"sleep" not in cmdline(child):
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
start(b"env -i sleep %d.25; true" % (1000 + os.getpid()))
pid = main()
child = subject._unfinished[b"1.1"]
assert 0 < child.tag == leftovers.read_tag(pid) == processes.tag_of(1)
sleeps = []
mine = b"sleep\\0%d.25" % (1000 + os.getpid())
while not sleeps:
    sleeps = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and mine in cmdline(pid)]
assert [subject._owner(each) for each in sleeps] == ["running"]
child.tag += 1
assert subject._owner(sleeps[0]) == "ended"
os.kill(sleeps[0], 9)
assert ended() == AttemptEnded(b"1.1")
assert leftovers.read_tag(1) == 0
""")


@pytest.mark.parametrize("kernel", ["", "processes._list_of = lambda _thread: -1"])
def test_each_of_many_that_are_started_at_once_is_born_with_its_own_tag(kernel: str) -> None:
    """The tag is there when they start, before anything could set it from outside."""
    run(f"""
{kernel}
starter, wrong, threads, born, libc = processes.Starter(), [], [], {{}}, processes._slow_libc
class Spawning:
    def posix_spawn(self, pid, *more):
        error = libc.posix_spawn(pid, *more)
        born[pid._obj.value] = leftovers.read_tag(pid._obj.value)
        return error
processes._slow_libc = Spawning()
def start_some(first):
    for tag in range(first, first + 40):
        pid = starter.start((b"/bin/true",), tag=tag)
        if born[pid] != tag:
            wrong.append((tag, born[pid]))
        processes.wait_for_end(pid)
        processes.reap(pid)
for first in range(1, 1001, 100):
    threads.append(start_thread(lambda first=first: start_some(first)))
for thread in threads:
    thread.join(120)
assert not wrong, wrong
""")


def test_of_two_starts_that_share_a_lease_the_newer_signs_it() -> None:
    run("""
def signed(number, job):
    fd = os.open("lease", os.O_RDWR | os.O_CREAT)
    text = b"%d " % job + PID + b"\\n"
    run(number, message(b"true", job, signatures=(b"gpu", text)), [fd])
    ended()
    return open("lease", "rb").read().split()[0]
assert [signed(5, 1), signed(4, 2), signed(6, 3)] == [b"1", b"1", b"3"]
""")
