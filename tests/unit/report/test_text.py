"""A report in a terminal."""

from simple_gpu_scheduler.report.text import show
from tests.support.report import began, built, ended, over, read, started


def test_on_a_terminal_tables_are_cut_to_its_width() -> None:
    report = built(began(), read(1, "true " + "字" * 100), started(0, 1), ended(1, 1), over(2))
    assert max(len(line) for line in show(report, 60)) <= 60 < max(len(line) for line in show(report, None))
    assert any(line.endswith("…") for line in show(report, 60))
