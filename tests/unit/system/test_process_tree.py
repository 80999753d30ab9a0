"""Which processes are leftovers, and that they are gone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simple_gpu_scheduler.system import process_tree, processes
from simple_gpu_scheduler.system.process_tree import Owner, Process, Running, strays
from tests.conftest import is_alive, until

ME, MAIN_A, MAIN_B = 100, 200, 300


def table(*rows: tuple[int, int, int, int]) -> dict[int, Process]:
    """Rows of pid, parent, session, born; this process is there already."""
    processes = [Process(ME, 1, ME, ME, 0, has_ended=False)]
    processes += [Process(pid, parent, session, session, born, has_ended=False) for pid, parent, session, born in rows]
    return {process.pid: process for process in processes}


def found(rows: dict[int, Process], running: Running, **owners: Owner) -> set[int]:
    return {process.pid for process in strays(rows, ME, running, lambda pid: owners.get(f"p{pid}", "unknown"))}


def test_what_a_running_job_has_is_left_alone() -> None:
    rows = table((MAIN_A, ME, MAIN_A, 10), (201, MAIN_A, MAIN_A, 11), (202, ME, MAIN_A, 12))
    assert found(rows, Running({MAIN_A})) == set()


def test_an_orphan_in_the_session_of_an_ended_job_is_a_stray_and_all_below_it() -> None:
    rows = table((MAIN_A, ME, MAIN_A, 10), (301, ME, MAIN_B, 11), (302, 301, MAIN_B, 12), (303, 302, 303, 13))
    assert found(rows, Running({MAIN_A}), p301="ended") == {301, 302, 303}


def test_a_daemon_is_known_by_its_mark() -> None:
    rows = table((MAIN_A, ME, MAIN_A, 10), (301, ME, 301, 11), (201, ME, 201, 11))
    assert found(rows, Running({MAIN_A}), p301="ended", p201="running") == {301}


def test_a_daemon_without_a_mark_is_spared_while_an_older_job_runs_that_may_own_it() -> None:
    rows = table((MAIN_A, ME, MAIN_A, 10), (301, ME, 301, 11))
    assert found(rows, Running({MAIN_A})) == set()
    assert found(table((301, ME, 301, 11)), Running(())) == {301}
    younger = table((MAIN_A, ME, MAIN_A, 12), (301, ME, 301, 11))
    assert found(younger, Running({MAIN_A})) == {301}


def test_children_from_before_this_program_was_executed_are_not_its_jobs() -> None:
    assert found(table((50, ME, ME, 1), (51, ME, 51, 1)), Running((), before={50, 51})) == set()


def test_where_orphans_of_others_are_adopted_too_only_a_mark_makes_a_stray() -> None:
    rows = table((301, ME, 301, 11), (302, ME, 302, 11))
    assert found(rows, Running((), spares_unknown=True), p302="ended") == {302}


def test_zombies_have_ended_but_what_is_below_them_has_not() -> None:
    rows = table((302, 301, MAIN_B, 12)) | {301: Process(301, ME, MAIN_B, MAIN_B, 11, has_ended=True)}
    assert found(rows, Running(())) == {302}


def test_the_table_knows_this_process() -> None:
    this = process_tree.read_table()[os.getpid()]
    assert (this.parent, this.session, this.has_ended) == (os.getppid(), os.getsid(0), False)


def test_a_variable_of_a_process_is_read_and_of_none_is_empty() -> None:
    with subprocess.Popen(["sleep", "60"], env={"A": "1", "B": "2"}) as process:
        until(lambda: process_tree.read_variable(process.pid, b"B") == b"2")
        assert process_tree.read_variable(process.pid, b"C") == b""
        process.kill()
    assert process_tree.read_variable(process.pid, b"A") == b""


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
    """In a process of its own, since adopting orphans is for a whole process."""
    script = f"""
import os, sys
from simple_gpu_scheduler.system import process_tree, processes
processes.adopt_orphans()
daemon = {DAEMON.format(path=str(tmp_path / "pid"), stubborn=stubborn)!r}
pid = processes.Starter().start((sys.executable.encode(), b"-c", daemon.encode()), [b"PATH=/bin:/usr/bin"])
processes.wait_for_end(pid)
assert processes.reap(pid) == 0
assert processes.has_orphans()
assert process_tree.end_strays(lambda: process_tree.Running(()), lambda pid: 'unknown', 0.3, bool) == (1, [])
assert not processes.has_orphans()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_pid_that_is_another_processes_now_is_not_signalled() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        impostor = process_tree.read_table()[other.pid]._replace(born=0)
        assert process_tree._tell(impostor, force=True)
        other.terminate()  # had it been sent KILL, that would have been the end of it
        assert other.wait() == -signal.SIGTERM


def test_a_process_of_another_user_is_named_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:

        def refuse(_pid: int, _number: int) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "kill", refuse)
        until(lambda: os.getsid(other.pid) == other.pid)
        _, left = process_tree.end_strays(lambda: Running(()), lambda _pid: "unknown", 60, bool)
        monkeypatch.undo()
        assert other.pid in left
        other.kill()


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        processes.Starter().start((b"/no/such/program",))


def test_a_started_program_has_its_own_session_no_input_and_no_ignored_signal(tmp_path: Path) -> None:
    show = f"exec >{tmp_path}/out; cat; cut -d' ' -f6 /proc/$$/stat; echo $$; grep SigIgn /proc/$$/status"
    ignored = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = processes.Starter().start((b"/bin/sh", b"-c", show.encode()), [b"PATH=/bin:/usr/bin"])
    signal.signal(signal.SIGTTOU, ignored)
    processes.wait_for_end(pid)
    assert processes.reap(pid) == 0
    session, own, signals = (tmp_path / "out").read_text().splitlines()
    assert session == own == str(pid)
    # 32 and 33 are glibc's own, which its posix_spawn ignores on the way and which no program can handle.
    assert int(signals.split()[1], 16) & ~(0b11 << 31) == 0


def test_a_program_has_the_common_environment_and_its_own(tmp_path: Path) -> None:
    starter = processes.Starter([b"PATH=/bin:/usr/bin", b"COMMON=1"])
    for more in ((), (b"A=x", b"B=y"), (b"A=z",)):
        pid = starter.start((b"/bin/sh", b"-c", f"env > {tmp_path}/out".encode()), more)
        processes.wait_for_end(pid)
        assert processes.reap(pid) == 0
        found = (tmp_path / "out").read_bytes().splitlines()
        assert [line for line in found if line[:1] in b"ABC"] == [b"COMMON=1", *more]
