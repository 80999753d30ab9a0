"""The files of runs."""

from pathlib import Path

from simple_gpu_scheduler.journal import disk, files


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
