"""Which processes are the main ones of attempts whose keeper was killed, and which belong to those attempts."""

import os

import pytest

from simple_gpu_scheduler.keeper import survivors
from simple_gpu_scheduler.keeper.survivors import Traces
from simple_gpu_scheduler.system import leftovers
from simple_gpu_scheduler.system.leftovers import Process

ME = os.getpid()
TRACES = Traces(b"RUN", {1: (1, 1), 2: (2, 1)})


def show(monkeypatch: pytest.MonkeyPatch, *processes: Process, **tags: int) -> None:
    """Nothing but these processes, with these tags and no marks."""
    table = {process.pid: process for process in processes}
    monkeypatch.setattr(leftovers, "read_table", lambda: table)
    monkeypatch.setattr(leftovers, "read_tag", lambda pid: tags.get(f"p{pid}", 0))
    monkeypatch.setattr(leftovers, "read_variable", lambda _pid, _name: b"")
    monkeypatch.setattr(os, "listdir", lambda _path: [])


def process(pid: int, session: int, born: int, parent: int = ME) -> Process:
    return Process(pid, parent, session, session, born, has_ended=False)


@pytest.mark.parametrize("session_of_daemon", [32_767, 302])
def test_the_main_process_is_the_oldest_also_where_pids_began_again_within_a_tick(
    monkeypatch: pytest.MonkeyPatch, session_of_daemon: int
) -> None:
    """A job's daemon has its tag, may lead a session too, and be born in the same tick of the clock."""
    rows = process(302, session_of_daemon, 50), process(32_767, 32_767, 50), process(400, 400, 49)
    show(monkeypatch, *rows, p302=1, p32767=1, p400=2)
    assert survivors._mains(TRACES) == {(1, 1): 32_767, (2, 1): 400}


def test_of_several_with_the_tag_of_an_attempt_the_first_to_be_born_is_the_main_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    show(monkeypatch, process(500, 500, 50), process(300, 300, 60), process(501, 501, 50), p300=1, p500=1, p501=1)
    assert survivors._mains(TRACES) == {(1, 1): 500}


def test_what_has_just_been_created_and_leads_no_session_yet_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    show(monkeypatch, process(300, ME, 50), p300=2)
    assert survivors._mains(TRACES) == {(2, 1): 300}


def test_a_process_belongs_to_the_child_of_ours_that_it_is_below_whatever_tags_a_scheduler_in_between_gave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It gives them beside those that it was given, so one of its may be that of another attempt of ours."""
    main, scheduler, its_keeper = process(300, 300, 50), process(301, 300, 51, 300), process(302, 302, 52, 301)
    orphan = process(310, 310, 53)
    show(monkeypatch, main, scheduler, its_keeper, orphan, p300=1, p301=1, p302=2, p310=2)
    assert survivors.find_alive(TRACES) == {(1, 1): [300, 301, 302], (2, 1): [310]}
