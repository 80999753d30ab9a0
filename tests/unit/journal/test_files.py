"""The files of runs."""

from pathlib import Path

from simple_gpu_scheduler.events import JobRequeued, RunEnded
from simple_gpu_scheduler.journal import disk, files
from simple_gpu_scheduler.journal.find import ending
from simple_gpu_scheduler.journal.records import encode
from tests.support.runs import job


def test_a_journal_that_cannot_be_asked_about_is_not_pruned(tmp_path: Path) -> None:
    names = [f"2026010{day}-000000-000000.jsonl" for day in range(1, 5)]
    for name in names[:3]:
        (tmp_path / name).write_text("")
    (tmp_path / names[3]).mkdir()  # opening it for writing fails, and so does locking it
    (tmp_path / "20260101-000000-000000.input-0").write_text("")
    with files.opened(str(tmp_path / names[1])) as fd:
        assert files.lock(fd, files.SCHEDULER)
        disk.prune(str(tmp_path), 1, lambda _path: False)
        assert sorted(path.name for path in tmp_path.iterdir()) == [names[1], names[3]]


def test_a_run_that_is_needed_is_not_pruned(tmp_path: Path) -> None:
    for day in range(1, 5):
        (tmp_path / f"2026010{day}-000000-000000.jsonl").write_text("")
    disk.prune(str(tmp_path), 1, lambda path: path.endswith("20260102-000000-000000.jsonl"))
    assert sorted(path.name[7] for path in tmp_path.iterdir()) == ["2", "4"]


def test_the_last_line_of_a_journal_tells_whether_anything_is_left(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    assert disk.is_finished(str(journal)) is None
    done = RunEnded(1, 0, 0, 0, 1.0, all_read=True, code=0)
    cases = [(done, True), (done._replace(left=1), False), (done._replace(all_read=False), False)]
    cases += [(done._replace(left=10), False), (done._replace(code=1), True), (done._replace(code=2), None)]
    for end, tells in cases:
        journal.write_text("x" * 5000 + "\n" + encode(end, 1.0))
        assert disk.is_finished(str(journal)) is tells
        assert tells is None or tells == (ending(str(journal)) == "finished")  # the same rule
    for torn in "", "x\n", encode(done, 1.0)[5:], encode(done, 1.0) + encode(JobRequeued(job(1), ""), 2.0):
        journal.write_text(torn)
        assert disk.is_finished(str(journal)) is None
