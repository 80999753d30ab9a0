"""A report in a terminal."""

import re

import pytest

from simple_gpu_scheduler.journal.samples import curves_in
from simple_gpu_scheduler.report.text import show, table
from simple_gpu_scheduler.report.use_text import sentence
from tests.support.night import night
from tests.support.report import began, built, ended, measured, over, read, started, use_of_gpu


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


def test_it_says_which_jobs_wasted_a_gpu_the_worst_first() -> None:
    records = [began(), read(1, "python good.py"), read(2, "python hung.py"), read(3, "python slow.py")]
    rest = {"memory": {"mean": 1, "max": 11 * 2**30}, "total_memory": 80 * 2**30, "energy": 3600 * 250}
    for job, mean, idle in ((1, 99, 0), (2, 3, 3480), (3, 40, 12)):
        at = 4000 * job
        use = use_of_gpu("3", 3600, mean, idle=idle, **rest)
        records += [started(at, job, gpus=("3",)), measured(at + 3600, job, use), ended(at + 3600, job, runtime=3600)]
    lines = show(built(*records, over(20_000)), None)
    at = next(number for number, line in enumerate(lines) if line.startswith("GPU USE"))
    assert lines[at] == "GPU USE  3.0 GPU-hours held, 1.6 of them wasted (1.0 at 0 %), 750 Wh"
    assert [" ".join(line.split()) for line in lines[at + 1 : at + 4]] == [
        "WASTED JOB ON HELD USED AT 0 % PEAK MEMORY ENERGY COMMAND",
        "58.2 min 2 gpu 3 60.0 min 3 % 58.0 min 11.0 / 80.0 GiB 250 Wh python hung.py",
        "36.0 min 3 gpu 3 60.0 min 40 % 0.2 min 11.0 / 80.0 GiB 250 Wh python slow.py",
    ]
    assert lines[at + 1].startswith("  WASTED  JOB  ON         HELD  USED    AT 0 %      PEAK MEMORY  ENERGY  COMMAND")
    assert lines[at + 3].startswith("36.0 min    3  gpu 3  60.0 min  40 %   0.2 min  11.0 / 80.0 GiB  250 Wh  python")
    assert lines[at + 4 : at + 6] == ["", "ADVICE"]  # job 1 has wasted nothing to speak of
    assert lines[-1].startswith("  job 2 held gpu 3")
    gpu = next(line for line in lines if line.startswith("3  "))
    assert gpu.endswith("47 %  750 Wh")


def test_where_no_job_wasted_a_gpu_only_the_sums_are_shown() -> None:
    use = use_of_gpu(seconds=100, mean=95)
    lines = show(
        built(began(), read(1), started(0, 1), measured(100, 1, use), ended(100, 1, runtime=100), over(100)), None
    )
    assert lines[-1] == "GPU USE  100 s held, 5.0 s of them wasted"


@pytest.mark.parametrize(
    ("hours", "by_failed", "end"),
    [(10, 1.5, "; 2 failed jobs held 1.5 GPU-hours"), (10, 0.9, ""), (40, 1.5, "")],
)
def test_what_failed_jobs_held_is_said_if_it_is_much(hours: float, by_failed: float, end: str) -> None:
    use = {"held": hours * 3600, "wasted": 60.0, "idle": 0.0, "energy": None, "held_by_failed": by_failed * 3600}
    assert sentence(use, 2) == f"{hours}.0 GPU-hours held, 60 s of them wasted (0.0 at 0 %)" + end
    if end:
        assert sentence(use, 1).endswith("; 1 failed job held 1.5 GPU-hours")


def test_how_long_failed_jobs_held_gpus_is_summed_over_gpus_and_attempts() -> None:
    two = ("0", "1")
    records = [
        *(started(0, 1, gpus=two), ended(10, 1, outcome="failed", runtime=10, final=False, code=1)),
        *(started(20, 1, attempt=2), ended(25, 1, attempt=2, outcome="failed", runtime=5, code=1)),
        *(started(30, 2), measured(40, 2, use_of_gpu(seconds=10)), ended(40, 2, runtime=10)),
    ]
    assert built(began(), read(1), read(2), *records, over(50))["use"]["held_by_failed"] == 25


def test_a_column_of_the_table_has_one_unit() -> None:
    dark = night(40, 3, most_points=50)
    report = built(*dark.records, curves=curves_in(dark.samples), now=1e5)
    lines = show(report, None)
    at = next(number for number, line in enumerate(lines) if line.startswith("  WASTED"))
    assert [re.findall(r"min|Wh", line) for line in lines[at + 1 : at + 6]] == [["min", "min", "min", "Wh"]] * 5
    assert not any(re.search(r"\d s\b", line) for line in lines[at + 1 : at + 6])


def test_advice_is_shown_if_there_is_some() -> None:
    report = built(began(), read(1), started(0, 1), ended(1, 1), over(2))
    assert "ADVICE" not in show(report, None)
    lines = show(report | {"advice": ["four of these fit on one GPU\x1b"]}, None)
    assert lines[lines.index("ADVICE") + 1] == "  four of these fit on one GPU\\x1b"


def test_the_blocks_of_a_night_fit_a_terminal() -> None:
    dark = night(40, 3, most_points=50)
    report = built(*dark.records, curves=curves_in(dark.samples), now=1e5)
    for width in (80, 100, 120):
        lines = show(report, width)
        at = next(number for number, line in enumerate(lines) if line.startswith("GPU USE"))
        assert lines[at + 1].split()[:3] == ["WASTED", "JOB", "ON"]
        assert all(len(line) <= width for line in lines[at : at + 7])
        assert ".py" in lines[at + 2]


def test_the_table_of_jobs_has_what_was_measured_before_the_parameters() -> None:
    use = use_of_gpu(idle=3, memory={"mean": 1, "max": 7}, energy=9, throttled={"heat": 2, "power": 3})
    records = [started(0, 1), measured(9, 1, use, seconds=2.5), ended(9, 1), started(9, 2), ended(10, 2)]
    headings, row, _ = table(built(began(), read(1, "t --lr 1"), read(2, "t --lr 2"), *records, over(10)))
    found = dict(zip(headings, row, strict=True))
    assert [*headings][-1] == "lr"
    names = "gpu_utilization_mean", "gpu_utilization_p95", "gpu_idle_seconds", "gpu_memory_peak", "energy_joules"
    assert [found[name] for name in names] == [50, 99, 3, 7, 9]
    assert [found[name] for name in ("throttled_seconds", "cpu_seconds", "cpu_memory_peak")] == [5, 2.5, None]
    assert found["energy_of_gpu"] == "false"


def test_the_table_of_jobs_marks_the_energy_of_a_gpu_that_others_used() -> None:
    shared = {"shared": 9, "of_gpu": ["energy"], "energy": 9}
    records = [began()]
    for job, more in enumerate((shared, {"energy": 5}, {}), 1):
        gpu = str(job)
        records += [read(job), started(0, job, gpus=(gpu,)), measured(9, job, use_of_gpu(gpu, **more)), ended(9, job)]
    headings, *rows = table(built(*records, over(10)))
    place = [*headings].index("energy_of_gpu")
    assert [row[place] for row in rows] == ["true", "false", None]
