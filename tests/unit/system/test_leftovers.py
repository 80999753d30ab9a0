"""Which processes are leftovers, and that they are gone."""

import os

from simple_gpu_scheduler.system import leftovers
from simple_gpu_scheduler.system.leftovers import Owner, Process, Running, strays

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


def test_zombies_have_ended_but_what_is_below_them_has_not() -> None:
    rows = table((302, 301, MAIN_B, 12)) | {301: Process(301, ME, MAIN_B, MAIN_B, 11, has_ended=True)}
    assert found(rows, Running(())) == {302}


def test_the_table_knows_this_process() -> None:
    this = leftovers.read_table()[os.getpid()]
    assert (this.parent, this.session, this.has_ended) == (os.getppid(), os.getsid(0), False)
