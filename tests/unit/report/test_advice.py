"""Advice is given where it is sure, with its figures, and otherwise not at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.report.advice import find_advice

GIB = 2**30
HOUR = 3600.0
BEGUN = 1_795_000_000.0


def use(**changes: Any) -> dict[str, Any]:
    return {
        "gpu": "0",
        "seconds": HOUR,
        "utilization": {"mean": 30.0, "max": 90, "p95": 80},
        "memory": {"mean": 6 * GIB, "max": 7 * GIB},
        "total_memory": 80 * GIB,
        "idle": 0.0,
        **changes,
    }


def job(number: int, *uses: dict[str, Any], cpu: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    attempt = {
        "attempt": 1,
        "gpus": [each["gpu"] for each in uses],
        "started": BEGUN,
        "ended": BEGUN + HOUR,
        "outcome": "succeeded",
        "measured": {"gpus": list(uses), "cpu": cpu or {}},
        **changes,
    }
    return {"job": number, "template": 0, "attempts": [attempt]}


def report(*jobs: dict[str, Any], took: float = 4 * HOUR) -> dict[str, Any]:
    run = {"begun": BEGUN, "ended": BEGUN + took, "heard": BEGUN + took, "sessions": [(BEGUN, BEGUN + took)]}
    return {"run": run, "jobs": list(jobs)}


def alike(count: int = 4, **changes: Any) -> list[dict[str, Any]]:
    return [job(number, use(**changes)) for number in range(1, count + 1)]


class TestSharing:
    def test_it_says_how_many_fit_what_to_type_and_what_it_would_have_saved(self) -> None:
        lengths = {1: 4 * HOUR, 3: 2 * HOUR}
        [said] = find_advice(report(*alike()), lambda many: lengths[many])
        assert said.startswith(
            "the jobs' memory peak is 7.0 of 80.0 GiB, and their GPUs were 30 % busy: 3 of them fit on one GPU; "
            "with --jobs-per-gpu 3 --mem 9G this run would have ended at "
        )
        assert said.endswith(" (simulated)")

    def test_without_a_simulation_that_is_like_the_run_it_promises_no_time(self) -> None:
        for replay in (None, lambda _many: 2 * HOUR, lambda _many: 4 * HOUR):
            [said] = find_advice(report(*alike()), replay)
            assert said.endswith("fit on one GPU; next time: --jobs-per-gpu 3 --mem 9G")

    @pytest.mark.parametrize(
        "changes",
        [
            {"memory": {"mean": 30 * GIB, "max": 50 * GIB}},
            {"utilization": {"mean": 60.0, "max": 90}},
            {"utilization": None},
            {"of_gpu": ["memory"]},
            {"of_gpu": ["utilization"]},
            {"shared": 5.0},
            {"memory": None},
            {"total_memory": None},
        ],
    )
    def test_it_says_nothing_where_it_is_not_sure(self, changes: dict[str, Any]) -> None:
        uses = {name: value for name, value in use(**changes).items() if value is not None}
        assert find_advice(report(*(job(number, uses) for number in range(4)))) == []

    def test_too_few_successes_or_too_much_that_is_unknown_or_wide_jobs_give_none(self) -> None:
        assert find_advice(report(*alike(2))) == []
        unknown = job(9, measured=None, gpus=["0"])
        assert find_advice(report(*alike(), unknown)) == []
        assert find_advice(report(*alike(), job(9, use(), use(gpu="1")))) == []

    def test_one_job_that_needs_more_decides(self) -> None:
        assert find_advice(report(*alike(), job(9, use(memory={"mean": GIB, "max": 60 * GIB})))) == []


class TestIdle:
    def test_a_gpu_that_was_held_and_not_used(self) -> None:
        held = job(17, use(gpu="3", utilization={"mean": 0.0, "max": 0}, idle=HOUR))
        assert find_advice(report(held)) == ["job 17 held gpu 3 for 1 h at 0 %"]

    def test_or_only_used_at_first(self) -> None:
        held = job(17, use(gpu="3", idle=0.75 * HOUR))
        assert find_advice(report(held)) == ["job 17 held gpu 3 for 1 h, 45 min of that at 0 %"]

    def test_a_moment_is_not_worth_a_word(self) -> None:
        assert find_advice(report(job(17, use(idle=500.0)))) == []
        assert find_advice(report(job(17, use(idle=0.4 * HOUR)))) == []

    def test_many_are_counted(self) -> None:
        jobs = [job(number, use(idle=HOUR - number)) for number in range(1, 6)]
        said = find_advice(report(*jobs))[-4:]
        assert said[0].startswith("job 1 held gpu 0")
        assert said[3] == "2 more jobs left a GPU at 0 % for at least half of their time, 1 h 59 min in all"
        assert find_advice(report(*jobs[:4]))[-1] == (
            "1 more job left a GPU at 0 % for at least half of its time, 59 min 56 s in all"
        )

    def test_a_job_has_one_line_however_many_gpus_it_held(self) -> None:
        wide = job(1, *(use(gpu=str(gpu), idle=HOUR - 60 * gpu) for gpu in range(4)))
        wide["attempts"].insert(0, {**wide["attempts"][0], "attempt": 2})
        assert find_advice(report(wide)) == ["job 1 left all 4 of its GPUs at 0 % for 57 min of 1 h"]
        whole = job(1, *(use(gpu=str(gpu), idle=HOUR) for gpu in range(4)))
        assert find_advice(report(whole)) == ["job 1 left all 4 of its GPUs at 0 % for all of its 1 h"]
        half = job(1, *(use(gpu=str(gpu), idle=HOUR * (gpu > 1)) for gpu in range(4)))
        assert find_advice(report(half)) == ["job 1 left 2 of its 4 GPUs at 0 % for all of its 1 h"]

    def test_that_one_gpu_would_do_is_said_only_if_it_is_sure(self) -> None:
        def said(first: dict[str, Any], **changes: Any) -> str:
            return find_advice(report(job(1, use(**first), use(**{"gpu": "1", "idle": HOUR} | changes))))[0]

        assert said({}) == "job 1 held gpu 1 for 1 h at 0 %; gpus=1 would do"
        assert said({}, idle=0.9 * HOUR) == "job 1 held gpu 1 for 1 h, 54 min of that at 0 %"
        too_large = {"memory": {"mean": 0, "max": 75 * GIB}}
        assert said(too_large) == said({"memory": None}) == "job 1 held gpu 1 for 1 h at 0 %"
        failed = job(1, use(), use(gpu="1", idle=HOUR), outcome="failed")
        assert find_advice(report(failed)) == ["job 1 held gpu 1 for 1 h at 0 %"]

    @given(st.lists(st.integers(0, 4), max_size=8))
    def test_no_job_is_named_twice(self, widths: list[int]) -> None:
        jobs = [
            job(number, *(use(gpu=str(gpu), idle=HOUR) for gpu in range(width))) for number, width in enumerate(widths)
        ]
        said = [line for line in find_advice(report(*jobs)) if line.startswith("job ")]
        assert len({line.split()[1] for line in said}) == len(said) == min(3, sum(width > 0 for width in widths))


class TestKinds:
    TEMPLATES = ["python train.py --workers …", "python eval.py\nagain", "c", "d"]

    def kind(self, template: int, count: int, wasted: float, charged: float = HOUR) -> list[dict[str, Any]]:
        gpu = use(wasted=wasted, charged=charged, of_gpu=["memory"])
        return [{**job(10 * template + at, gpu), "template": template} for at in range(count)]

    def said(self, *jobs: dict[str, Any]) -> list[str]:
        return find_advice({**report(*jobs), "templates": [{"template": each} for each in self.TEMPLATES]})

    def test_the_two_that_wasted_the_most(self) -> None:
        jobs = [*self.kind(0, 4, 0.7 * HOUR), *self.kind(1, 3, 0.9 * HOUR), *self.kind(2, 3, 0.6 * HOUR)]
        assert self.said(*jobs) == [
            '4 jobs of "python train.py --workers …" used their GPUs to 30 %: 2.8 GPU-hours wasted',
            '3 jobs of "python eval.py again" used their GPUs to 10 %: 2.7 GPU-hours wasted',
        ]

    @pytest.mark.parametrize(
        ("count", "wasted", "charged"), [(2, HOUR, HOUR), (3, 0.3 * HOUR, 0.4 * HOUR), (4, HOUR, 2 * HOUR)]
    )
    def test_not_of_few_jobs_nor_of_little_waste(self, count: int, wasted: float, charged: float) -> None:
        assert self.said(*self.kind(0, count, wasted, charged)) == []

    def test_a_long_command_is_shortened(self) -> None:
        self.TEMPLATES = ["python train.py " + "--option value " * 90]
        [said] = self.said(*self.kind(0, 3, 0.9 * HOUR))
        assert len(said) < 150


class TestStalled:
    def test_for_how_long_it_held_its_gpus(self) -> None:
        held = {**job(1, use(idle=HOUR), outcome="stalled"), "reason": "no output and no CPU time used for 30 min"}
        said = "job 1 stalled: it held gpu 0 for 1 h (no output and no CPU time used for 30 min)"
        assert find_advice(report(held)) == [said]

    def test_many_are_counted_and_jobs_without_a_gpu_are_not(self) -> None:
        jobs = [job(number, use(), use(gpu="1"), outcome="stalled") for number in range(1, 6)]
        said = find_advice(report(*jobs, job(9, outcome="stalled", gpus=[])))
        assert said[0] == "job 1 stalled: it held gpus 0,1 for 1 h"
        assert said[3:] == ["2 more jobs stalled, with GPUs for 4 h"]


class TestWaitingForData:
    CPU = {"seconds": 2 * HOUR, "cores": 2}

    def test_all_of_the_cpu_and_little_of_the_gpu(self) -> None:
        said = find_advice(report(job(5, use(utilization={"mean": 20.0, "max": 50}), cpu=self.CPU)))
        assert said == ["job 5 waits for data: CPU at 100 % of 2 cores, GPU at 20 %"]

    def test_jobs_alike_are_named_together(self) -> None:
        few = use(utilization={"mean": 20.0, "max": 50}, of_gpu=["memory"])
        said = find_advice(report(job(5, few, cpu=self.CPU), job(6, few, cpu=self.CPU)))
        assert said == ["job 5 and one more of its kind wait for data: CPU at 100 % of 2 cores, GPU at 20 %"]

    def test_jobs_are_counted_and_not_their_gpus(self) -> None:
        few = [use(gpu=gpu, utilization={"mean": 20.0, "max": 50}) for gpu in ("0", "1")]
        said = find_advice(report(job(5, *few, cpu=self.CPU)))
        assert said == ["job 5 waits for data: CPU at 100 % of 2 cores, GPU at 20 %"]
        said = find_advice(report(*(job(number, *few, cpu=self.CPU) for number in (5, 6, 7))))
        assert said[0].startswith("job 5 and 2 more of its kind wait for data: ")

    def test_not_where_either_is_otherwise(self) -> None:
        few = use(utilization={"mean": 20.0, "max": 50})
        assert find_advice(report(job(5, few, cpu={"seconds": HOUR, "cores": 2}))) == []
        assert find_advice(report(job(5, few, cpu={"seconds": 2 * HOUR}))) == []
        assert find_advice(report(job(5, use(utilization={"mean": 80.0, "max": 90}), cpu=self.CPU))) == []


class TestTrouble:
    def test_heat(self) -> None:
        hot = use(throttled={"heat": 0.38 * HOUR, "power": 50.0}, temperature={"mean": 80.0, "max": 88})
        assert find_advice(report(job(1, hot))) == ["gpu 0 was throttled for 38 % of the time by heat (up to 88 °C)"]
        assert find_advice(report(job(1, use(throttled={"heat": 0.05 * HOUR})))) == []
        assert find_advice(report(job(1, use(throttled={"power": HOUR})))) == []

    def test_errors_of_the_driver(self) -> None:
        [said] = find_advice(report(job(4, use(gpu="2", xids={"79": 1}))))
        assert said == "gpu 2 reported XID 79 once during job 4; see NVIDIA's list of XID errors"


def test_a_run_of_which_nothing_was_measured_gets_no_advice() -> None:
    assert find_advice(report(job(1, measured=None, gpus=["0"]), job(2, gpus=[]))) == []
