"""A report in a terminal."""

from simple_gpu_scheduler.report.text import show, table
from tests.support.report import began, built, ended, over, read, started


def test_on_a_terminal_tables_are_cut_to_its_width() -> None:
    report = built(began(), read(1, "true " + "字" * 100), started(0, 1), ended(1, 1), over(2))
    assert max(len(line) for line in show(report, 60)) <= 60 < max(len(line) for line in show(report, None))
    assert any("…" in line for line in show(report, 60))


def test_on_a_terminal_what_commands_share_is_cut_and_what_differs_is_kept() -> None:
    values = [f"{1 / job:.4f}" for job in range(1, 6)]
    common = "python3 train.py --data /data/imagenet --model resnet50 --output /scratch/me/runs --epochs 100 --lr"
    jobs = [read(job, f"{common} {value} --momentum {job}") for job, value in enumerate(values, 1)]
    ran = [record for job in range(1, 6) for record in (started(0, job), ended(1, job))]
    report = built(began(), *jobs, *ran, over(2))
    lines = show(report, 80)
    longest = next(at for at, line in enumerate(lines) if line.startswith("LONGEST"))
    for line, value in zip(lines[longest + 1 :], values, strict=False):
        assert f" --lr {value} --momentum " in line
        assert len(line) <= 80


def test_results_show_what_can_be_compared_lowest_first() -> None:
    jobs = range(1, 8)
    commands = [read(job, f"t --lr 0.{job} --output runs/{job}.json") for job in jobs]
    ran = [record for job in jobs for record in (started(job - 1, job), ended(job, job))]
    report = built(began(), *commands, *ran, over(9), metric="loss")
    assert report["axes"] == ["lr"]
    for job in report["jobs"]:
        job |= {"log": "log", "result": 1 / job["job"]}
    lines = show(report, None)
    at = next(number for number, line in enumerate(lines) if line.startswith("    loss  JOB"))
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["0.142857", "7", "succeeded", "lr=0.7"], ["0.166667", "6", "succeeded", "lr=0.6"]
    ]  # fmt: skip
    (headings, *_) = table(report)
    assert [*headings][-3:] == ["lr", "output", "loss"]
