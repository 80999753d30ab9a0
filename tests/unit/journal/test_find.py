"""Which run is meant, and how it stands."""

import json
import os
from pathlib import Path

import pytest

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import Outcome, Place
from simple_gpu_scheduler.journal import files, find
from simple_gpu_scheduler.journal.records import encode
from simple_gpu_scheduler.journal.run_state import read_state
from simple_gpu_scheduler.resume.find import is_done
from tests.support.runs import DONE, FIRST, SECOND, THIRD, began, ended, job, journal_of, write

REFUSED = events.RunEnded(0, 0, 0, 0, 0.0, all_read=False, code=2)
WRONG = events.LineRefused(Place(1), "mem: 10 bytes? write 10G", 1)
NONE_RAN = events.RunEnded(0, 0, 0, 1, 0.1, all_read=True, code=2)
FAILURE = Outcome("failed", 3)
DROPPED = (events.JobDropped(job(2), "its dependency failed"),)


def test_standing_tells_a_run_that_finished_from_one_that_was_stopped_paused_or_killed() -> None:
    def stands(*happened: events.Event, alive: bool = False) -> str:
        return find.standing(read_state(journal_of(began(FIRST), *happened)), alive)

    read = events.JobsRead([job(1)])
    assert stands(read, *ended(job(1)), DONE) == "finished"
    assert stands(read, DONE) == stands(DONE._replace(all_read=False)) == "stopped"
    assert stands(read) == stands(events.Paused(True)) == "died"
    assert stands(read, alive=True) == stands(DONE, alive=True) == "running"
    assert stands(events.Paused(True), alive=True) == "paused"
    assert stands(events.Paused(True), events.Paused(False), alive=True) == "running"


@pytest.mark.parametrize(
    ("happened", "how"),
    [
        ([], "died"),
        ([REFUSED], "refused"),
        ([events.JobsRead([job(1)]), DONE._replace(left=1)], "stopped"),
        ([events.JobsRead([job(1)]), *ended(job(1)), DONE], "finished"),
        ([events.JobsRead([job(1)]), *ended(job(1)), DONE._replace(code=2)], "finished"),
        ([events.JobsRead([job(1)]), began(FIRST)._replace(is_resumed=True), REFUSED], "stopped"),
        ([WRONG, NONE_RAN], "refused"),
        ([WRONG, NONE_RAN, began(FIRST)._replace(is_resumed=True), NONE_RAN], "refused"),
        ([WRONG, NONE_RAN._replace(all_read=False, code=143)], "stopped"),
        ([WRONG, events.JobsRead([job(2)]), *DROPPED, NONE_RAN._replace(not_started=2)], "finished"),
        ([WRONG, events.JobsRead([job(2)]), *ended(job(2)), NONE_RAN._replace(succeeded=1)], "finished"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_end_of_a_journal_tells_the_same_as_all_of_it(
    happened: list[events.Event], how: str, tmp_path: Path
) -> None:
    """A run that was resumed and refused still has the jobs it had, and can be resumed again."""
    journal = tmp_path / "journal"
    journal.write_bytes(journal_of(began(FIRST), *happened))
    assert (find.ending(str(journal)), find.standing(find.load(str(journal)), alive=False)) == (how, how)
    assert is_done(str(journal), failed_too=False) == (how in ("finished", "refused"))


@pytest.mark.parametrize(
    ("happened", "is_left"),
    [
        ([WRONG, NONE_RAN], False),
        ([WRONG, events.JobsRead([job(2)]), *ended(job(2)), NONE_RAN._replace(succeeded=1)], False),
        ([WRONG, events.JobsRead([job(2)]), *DROPPED, NONE_RAN._replace(not_started=2)], True),
        ([events.JobsRead([job(1)]), *ended(job(1), FAILURE), NONE_RAN._replace(failed=1, not_started=0)], True),
    ],
)
def test_a_job_that_failed_or_was_not_started_can_be_retried_and_a_refused_line_cannot(
    happened: list[events.Event], is_left: bool, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    journal.write_bytes(journal_of(began(FIRST), *happened))
    assert is_done(str(journal), failed_too=True) != is_left


class TestChoosing:
    def test_takes_a_prefix_of_an_id_or_of_its_last_part(self) -> None:
        paths = [str(write(run)) for run in (FIRST, SECOND, THIRD)]
        assert find.choose("") == find.choose(THIRD) == find.choose("20261119") == find.choose("c0f") == paths[2]
        assert find.choose("2b4a") == find.choose(FIRST) == paths[0]

    def test_says_what_is_wrong_with_a_name(self) -> None:
        with pytest.raises(UserError, match=r"no runs yet; their journals are kept in /.*/runs by default"):
            find.choose("")
        for run in (FIRST, SECOND, THIRD):
            write(run)
        with pytest.raises(UserError, match=f"'2b4' is ambiguous: {SECOND} or {FIRST}; use a longer prefix"):
            find.choose("2b4")
        with pytest.raises(UserError, match=r"no run matches 'dead\\x1b'"):
            find.choose("dead\x1b")

    def test_without_a_word_a_policy_chooses_the_newest_an_active_one_or_the_only_active_one(self) -> None:
        paths = [str(write(run)) for run in (FIRST, SECOND, THIRD)]
        assert find.choose("", find.active_first) == find.choose("") == paths[2]
        with pytest.raises(UserError, match="no run is active; 'simple_gpu_scheduler history' lists all"):
            find.choose("", find.only_active)
        assert find.choose(FIRST, find.only_active) == paths[0]
        held = [os.open(path, os.O_RDWR) for path in paths[:2]]
        files.lock(held[1], files.SCHEDULER)
        assert find.choose("", find.active_first) == find.choose("", find.only_active) == paths[1]
        assert find.choose("") == paths[2]
        files.lock(held[0], files.SCHEDULER)
        with pytest.raises(UserError, match=f"2 runs are active: {SECOND} and {FIRST}; name the one"):
            find.choose("", find.only_active)
        for fd in held:
            os.close(fd)

    def test_the_newest_is_the_one_that_was_started_or_resumed_last_however_long_ago_it_began(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        resumed = encode(began(FIRST)._replace(is_resumed=True), 3000.0) + encode(DONE, 4000.0)
        first = write(FIRST, DONE, directory=str(tmp_path), more=resumed.encode())
        second = write(SECOND, DONE, directory=str(tmp_path))
        write(THIRD, more=encode(began(THIRD)._replace(is_resumed=True), 5000.0).encode())
        assert find.choose("") == str(first)
        os.utime(first, (3500.0, 3500.0))
        os.utime(second, (4500.0, 4500.0))  # it may have run for longer
        assert find.choose("") == str(first)
        first.unlink()
        assert find.choose("") == str(second)

    def test_the_newest_is_none_that_was_refused_unless_there_is_no_other_or_it_is_waited_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        first = write(FIRST, events.JobsRead([job(1)]), *ended(job(1)), DONE, directory=str(tmp_path))
        second = write(SECOND, WRONG, NONE_RAN, directory=str(tmp_path))
        for path, at in ((first, 1000.0), (second, 2000.0)):
            os.utime(path, (at, at))
        assert find.choose("") == str(first)
        assert find.choose("", find.active_first) == find.choose(SECOND) == str(second)
        first.unlink()
        assert find.choose("") == str(second)


def test_a_file_was_followed_if_the_run_was_started_or_resumed_with_it(tmp_path: Path) -> None:
    start = {"event": "run began", "at": 1.0, "run": "x", "version": 1, "inputs": []}
    follows = start | {"inputs": [{"kind": "follow", "path": "/q.txt"}]}
    reads = start | {"inputs": [{"kind": "file", "path": "/q.txt"}]}
    other = {"event": "notified", "at": 1.0, "text": '{"event":"run began"'}
    for story, has in (([follows], True), ([reads], False), ([reads, other, follows, other], True), ([], False)):
        journal = tmp_path / "journal"
        journal.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in story))
        assert find.has_followed(str(journal), "/q.txt") == has
        assert not find.has_followed(str(journal), "/other.txt")
