"""Real processes: found, read, and ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simple_gpu_scheduler.system import leftovers
from simple_gpu_scheduler.system.leftovers import Running, strays
from tests.conftest import is_alive, until


def test_a_variable_of_a_process_is_read_and_of_none_is_empty() -> None:
    with subprocess.Popen(["sleep", "60"], env={"A": "1", "B": "2"}) as process:
        until(lambda: leftovers.read_variable(process.pid, b"B") == b"2")
        assert leftovers.read_variable(process.pid, b"C") == b""
        process.kill()
    assert leftovers.read_variable(process.pid, b"A") == b""


# A job that leaves a daemon with a session of its own, which ignores TERM or not, and clears its environment or not.
DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if {stubborn}:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with open({path!r}, "w") as file:
            file.write(str(os.getpid()) + "\\n")
        time.sleep(1000)
    os._exit(0)
while not os.path.exists({path!r}):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_daemon_is_ended_by_term_or_by_kill(tmp_path: Path, stubborn: bool) -> None:
    """In a process of its own, since collecting orphans is a setting of a whole process."""
    script = f"""
import os, sys
from simple_gpu_scheduler.system import leftovers, processes
processes.adopt_orphans()
daemon = {DAEMON.format(path=str(tmp_path / "pid"), stubborn=stubborn)!r}
pid = processes.Starter().start((sys.executable.encode(), b"-c", daemon.encode()), [b"PATH=/bin:/usr/bin"])
processes.wait_for_end(pid)
assert processes.reap(pid) == 0
me, none = os.getpid(), leftovers.Running(())
assert processes.are_alive(leftovers.children(me))
find = lambda: leftovers.strays(leftovers.read_table(), me, none, lambda pid: 'unknown')
assert leftovers.end_all(find, 0.3) == (1, [], '')
assert not processes.are_alive(leftovers.children(me))
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    assert not is_alive(int((tmp_path / "pid").read_text()))


LEFT_FOR_A_MOMENT = """
import os, sys
from simple_gpu_scheduler.system import leftovers, processes
processes.adopt_orphans()
leftovers.PATIENCE = 1000
leave = b"(trap 'echo termed > end; exit' TERM; sleep 0.3 & : > began; wait; echo ended > end) &"
leave += b" until test -e began; do sleep 0.01; done"
processes.wait_for_end(processes.Starter().start((b"/bin/sh", b"-c", leave), [b"PATH=/bin:/usr/bin"]))
none = leftovers.Running(())
find = lambda: leftovers.strays(leftovers.read_table(), os.getpid(), none, lambda pid: "ended")
swept = leftovers.end_all(find, 1000, lambda: 15 if sys.argv[1] == "told" else 0)
print(swept.ended > 0)
"""


@pytest.mark.parametrize(("was", "has_told", "end"), [("left", b"False\n", "ended\n"), ("told", b"True\n", "termed\n")])
def test_what_ends_by_itself_in_a_moment_is_neither_signalled_nor_counted_unless_the_attempt_was_told_to_end(
    tmp_path: Path, was: str, has_told: bytes, end: str
) -> None:
    argv = [sys.executable, "-c", LEFT_FOR_A_MOMENT, was]
    done = subprocess.run(argv, check=True, timeout=120, cwd=tmp_path, capture_output=True)
    assert done.stdout == has_told
    assert (tmp_path / "end").read_text() == end


def test_a_pid_that_is_another_processes_now_is_not_signalled() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        impostor = leftovers.read_table()[other.pid]._replace(born=0)
        assert leftovers._tell(impostor, force=True)
        other.terminate()  # had it been sent KILL, that would have been the end of it
        assert other.wait() == -signal.SIGTERM


def test_a_process_of_another_user_is_named_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:

        def refuse(_pid: int, _number: int) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "kill", refuse)
        until(lambda: os.getsid(other.pid) == other.pid)
        me, none = os.getpid(), Running(())
        swept = leftovers.end_all(lambda: strays(leftovers.read_table(), me, none, lambda _pid: "unknown"), 60)
        monkeypatch.undo()
        assert other.pid in swept.beyond_us
        other.kill()
