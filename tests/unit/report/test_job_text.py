"""The report of one job."""

from typing import Any

from simple_gpu_scheduler.journal.samples import curves_in
from simple_gpu_scheduler.report.job_text import show_one
from tests.support.night import night
from tests.support.report import began, built, curve, ended, measured, over, read, started, use_of_gpu

GIB = 2**30
FIGURES: dict[str, Any] = {
    "memory": {"mean": 30 * GIB, "max": 42 * GIB}, "total_memory": 80 * GIB, "idle": 30.0,
    "temperature": {"mean": 61.2, "max": 70}, "power": {"mean": 250.0, "max": 300.0}, "energy": 25_000.0,
    "by_power": True, "clock": {"mean": 1395.0, "max": 1410}, "throttled": {"heat": 12.0, "power": 0},
    "traffic": {"pcie_sent": GIB, "pcie_received": 1187 * GIB, "nvlink_sent": GIB}, "xids": {"13": 2}, "shared": 40.0,
    "of_gpu": ["energy", "power"],
}  # fmt: skip


def shown(report: dict[str, Any]) -> str:
    return "\n".join(" ".join(line.split()) for line in show_one(report, None))


def test_it_tells_all_that_a_job_did_to_its_gpus() -> None:
    points = [(float(at), 0.0 if at < 30 else 90.0) for at in range(0, 100, 10)]
    used = measured(
        100, 1, use_of_gpu(mean=63, **FIGURES), seconds=350.0, cores=32, peak_memory=6 * GIB, read=GIB, written=0
    )
    report = built(
        began(), read(1, "python train.py\x1b"), started(0, 1), used, ended(100, 1, runtime=100), over(100),
        curves={(1, 1): [curve(points, power=250.0)]}, job=1,
    )  # fmt: skip
    text = shown(report)
    for line in (
        "job 1 of run r: succeeded",
        "python train.py\\x1b",
        "waited 0.0 s, ran for 1 min 40 s, on gpu 0",
        "wasted 37 s (37 %) of 1 min 40 s of GPU time, 6.94 Wh",
        "▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁" + "█" * 42 + " utilisation over 1 min 40 s",
        "utilisation 0 % 63 % 100 % 99 %",
        "memory - 30.0 GiB 42.0 GiB -",
        "temperature - 61 °C 70 °C -",
        "power 250 W 250 W 300 W - of the whole GPU",
        "clock - 1395 MHz 1410 MHz -",
        "at 0 % 30 s (30 %)",
        "peak memory 42.0 / 80.0 GiB",
        "energy 6.94 Wh (computed from the power, of the whole GPU)",
        "throttled 12 s by heat",
        "PCIe 1.16 TiB to the GPU, 1.0 GiB from it",
        "NVLink 1.0 GiB from the GPU",
        "XID errors 13 (2 times)",
        "shared 40 s with other jobs",
        "time 5 min 50 s, 3.5 of 32 cores busy on average",
        "disks 1.0 GiB read, 0 B written",
    ):
        assert line in text
    assert "\x1b" not in text


def test_how_many_cores_there_were_is_told_of_a_short_attempt_too_if_all_others_agree() -> None:
    def said(*cores: int) -> str:
        records = [began(), read(1), started(0, 1), measured(8, 1, use_of_gpu(), seconds=4.0), ended(8, 1, runtime=8)]
        for job, each in enumerate(cores, 2):
            used = measured(60, job, use_of_gpu(str(job)), seconds=9.0, cores=each)
            records += [read(job), started(9, job, gpus=(str(job),)), used, ended(60, job, runtime=51)]
        return shown(built(*records, over(60), job=1))

    assert "0.5 of 32 cores busy" in said(32, 32)
    assert "0.5 cores busy" in said(32, 8)
    assert "0.5 cores busy" in said()


def test_of_a_running_job_it_says_where_the_figures_are_now() -> None:
    report = built(began(), read(1), started(0, 1), is_alive=True, runs_jobs=True, standing="running", job=1)
    assert "every 5 minutes or so; now: simple_gpu_scheduler status --json" in shown(report)


def test_each_attempt_is_listed_and_the_figures_are_those_of_the_last_measured() -> None:
    first = [started(0, 1), measured(9, 1, use_of_gpu("0")), ended(9, 1, outcome="failed", code=1, final=False)]
    records = [began(), read(1), *first, started(10, 1, 2, ("1",)), ended(10, 1, 2, runtime=0.2), over(20)]
    text = shown(built(*records, job=1))
    assert "1 failed with exit code 1 gpu 0" in text
    assert "2 succeeded gpu 1" in text
    assert "GPU 0, attempt 1" in text


def test_what_was_not_measured_is_said_and_not_shown_as_zero() -> None:
    over_at_once = [began(), read(1), read(2), started(0, 1), ended(1, 1)]
    text = shown(built(*over_at_once, over(9), job=1))
    assert "nothing was measured" in text
    assert "0 %" not in text
    running = [began(), read(1), started(0, 1)]
    alive = {"is_alive": True, "runs_jobs": True, "standing": "running"}
    drawn = {(1, 1): [curve([(0, 50), (10, 100)])]}
    text = shown(built(*running, **alive, now=400, job=1, curves=drawn))
    assert "still running" in text
    assert "█ GPU 0" in text


def test_a_job_that_has_not_started_has_little_to_tell() -> None:
    report = built(began(), read(1), now=5, job=1, is_alive=True, runs_jobs=True, standing="running")
    assert show_one(report, None) == ["job 1 of run r: waiting", "  true", "  line 1"]


def test_a_job_that_failed_shows_its_last_lines_and_how_it_ended() -> None:
    report = built(began(), read(1), started(0, 1), ended(9, 1, outcome="failed", code=3, runtime=9), over(9), job=1)
    report["jobs"][0] |= {"tail": "a\n\nb\x1b", "log": "log"}
    lines = show_one(report, None)
    assert lines[0] == "job 1 of run r: failed with exit code 3"
    assert lines[-3:] == ["LAST LINES", "  | a", "  | b\\x1b"]
    assert not any("wasted" in line for line in lines)


def test_a_report_of_one_job_has_nothing_of_others() -> None:
    dark = night(20, 2, most_points=50)
    curves = curves_in(dark.samples)
    report = built(*dark.records, curves=curves, now=1e5, job=3)
    assert [job["job"] for job in report["jobs"]] == [3]
    assert len(report["lanes"]) == len(report["gpus"]) == 1
    (job,) = report["jobs"]
    assert report["lanes"][0]["from"] == job["started"]
    assert abs(sum(report["lanes"][0]["seconds"]) - job["measured"]["held"]) <= 1
    assert report["outcomes"] == {"succeeded": 1}
