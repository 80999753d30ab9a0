"""What journals tell: each part is read once, and nothing that was counted is lost."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import Attempt, Job, Place
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.read import read_records
from simple_gpu_scheduler.metrics import runs
from simple_gpu_scheduler.metrics.families import JobGpu, SeenJob
from simple_gpu_scheduler.metrics.runs import ActiveRun, Journals, seen_run, share_of
from simple_gpu_scheduler.metrics.totals import JobTotals, RunFold
from tests.support.runs import DONE, FIRST, SECOND, THIRD, began, ended, job, journal_of, write

NAMES = {"0": ("0", "GPU-0"), "GPU-1": ("1", "GPU-1")}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many bytes of journals were read since it was last asked."""
    total = 0
    pread = os.pread

    def counting(fd: int, size: int, offset: int) -> bytes:
        nonlocal total
        data = pread(fd, size, offset)
        total += len(data)
        return data

    def told() -> int:
        nonlocal total
        before, total = total, 0
        return before

    monkeypatch.setattr(os, "pread", counting)
    return told


def past(run: str) -> Path:
    return write(run, events.JobsRead((job(1),)), *ended(job(1)), DONE)


def test_a_journal_that_is_over_is_read_once(reads: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [past(f"20261118-{number:06}-2b4a4e") for number in range(20)]
    totals = JobTotals()
    journals = Journals(totals)
    assert journals.read() == []
    assert (totals.outcomes["succeeded"], reads()) == (20, sum(path.stat().st_size for path in paths))
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("a journal is opened again"))
    for _ in range(3):
        journals.read()
    assert (totals.outcomes["succeeded"], reads()) == (20, 0)


def test_only_what_is_new_is_read_even_of_half_a_line(reads: Callable[[], int]) -> None:
    path = past(FIRST)
    more = journal_of(began(FIRST), events.JobsRead((job(2),)), *ended(job(2)))
    totals = JobTotals()
    journals = Journals(totals)
    journals.read()
    reads()
    half = len(more) - 10
    with path.open("ab") as file:
        file.write(more[:half])
    journals.read()
    assert (totals.outcomes["succeeded"], reads()) == (1, half)
    with path.open("ab") as file:
        file.write(more[half:])
    journals.read()
    assert totals.outcomes["succeeded"] == 2
    assert reads() < len(more), "whole lines are not read again"


def test_what_was_counted_stays_when_old_runs_are_deleted() -> None:
    path = past(FIRST)
    past(SECOND)
    totals = JobTotals()
    journals = Journals(totals)
    journals.read()
    path.unlink()
    journals.read()
    past(THIRD)
    journals.read()
    assert totals.outcomes["succeeded"] == 3


def test_a_run_is_active_as_long_as_its_scheduler_runs() -> None:
    path = write(FIRST, events.JobsRead((job(1),)), ended(job(1))[0])
    past(SECOND)
    journals = Journals(JobTotals())
    fd = os.open(path, os.O_RDWR)
    assert files.lock(fd, files.SCHEDULER)
    for _ in range(2):
        [active] = journals.read()
        assert (active.journal, [*active.fold.running]) == (str(path), [1])
    os.close(fd)
    assert journals.read() == []


def test_a_journal_of_another_user_or_of_no_known_form_is_left_alone() -> None:
    path = past(FIRST)
    path.write_bytes(b"\x00\xffno journal\n" * 1000)
    totals = JobTotals()
    Journals(totals).read()
    assert sum(totals.outcomes.values()) == 0


def test_a_run_that_takes_long_to_answer_is_asked_once_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    continued = Event()

    def ask(journal: str, request: dict[str, object]) -> dict[str, object]:
        assert request == {"do": "status"}
        asked.append(journal)
        if journal == "slow" and len(asked) == 2:
            continued.wait()
        if journal == "gone":
            raise UserError("it has ended")
        return {"counts": {}}

    monkeypatch.setattr(runs, "ask", ask)
    statuses = runs.Statuses()
    assert statuses.ask(["quick"]).keys() == {"quick"}
    assert statuses.ask(["slow", "quick", "gone"]).keys() == {"quick"}
    assert statuses.ask(["slow"]) == {}
    assert asked.count("slow") == 1
    continued.set()
    assert statuses.ask(["slow"]).keys() == {"slow"}


def folded(*happened: events.Event) -> ActiveRun:
    fold = RunFold(JobTotals())
    fold.feed(read_records(journal_of(began(FIRST), *happened)).records)
    return ActiveRun(f"/runs/{FIRST}.jsonl", fold)


BIG = Job(1, b"true", Place(1), name="big", label="vision")
STARTED = events.JobStarted(Attempt(BIG, 2, ("0", "GPU-1"), (0, 1)))


def names_of(gpu: str) -> tuple[str, str]:
    return NAMES.get(gpu, (gpu, ""))


def test_a_run_that_does_not_answer_is_known_by_its_journal() -> None:
    seen = seen_run(folded(events.JobsRead((BIG,)), STARTED), None, names_of, 2000.0)
    shares = [JobGpu("0", "GPU-0"), JobGpu("1", "GPU-1")]
    assert (seen.run, seen.is_up, seen.counts, seen.began) == (FIRST, False, {}, 1000.0)
    assert seen.jobs == [SeenJob(1, 2, 1002.0, "big", "vision", shares)]


def test_a_run_that_answers_says_what_runs_and_what_it_does() -> None:
    status = {
        "counts": {"running": 1, "waiting": 3, "strange": "x"},
        "paused": True,
        "running": [
            {
                "job": 1, "name": "big", "attempt": 2, "gpus": ["0", "GPU-1"], "runtime": 900.0,
                "measured": {"gpus": [{"gpu": "GPU-1", "energy": 5.0, "now": {"utilization": 40}}]},
            },
            {"job": 2, "name": "", "attempt": 1, "gpus": [], "runtime": 10.0},
            {"job": "nonsense"},
        ],
    }  # fmt: skip
    seen = seen_run(folded(events.JobsRead((BIG,)), STARTED), status, names_of, 2000.0)
    assert (seen.is_up, seen.is_paused, seen.counts) == (True, True, {"running": 1, "waiting": 3})
    one, two = seen.jobs
    assert one.shares == [JobGpu("0", "GPU-0"), JobGpu("1", "GPU-1", utilization=40, energy=5.0)]
    assert (one.started, one.label) == (1002.0, "vision")
    assert two == SeenJob(2, 1, 1990.0, shares=[])


def test_what_a_run_says_of_a_gpu_is_taken_as_far_as_it_says_it() -> None:
    use = {
        "gpu": "0",
        "energy": 5.0,
        "idle": 1.0,
        "memory": {"mean": 1, "max": 9},
        "now": {"utilization": 50, "memory": 7},
    }
    assert share_of("0", "GPU-0", use) == JobGpu("0", "GPU-0", 50, 7, 9, 5.0, 1.0)
    assert share_of("0", "", {"now": None, "memory": "much", "energy": "x", "idle": True}) == JobGpu("0")
