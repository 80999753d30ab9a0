"""A run's attempts, and what a Prometheus is asked for them."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.journal.read import Record
from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.report.build import Basis, build
from simple_gpu_scheduler.report.measured import replaced
from simple_gpu_scheduler.report.prometheus.api import SeriesAnswer
from simple_gpu_scheduler.report.prometheus.collection import collect, placed_attempts
from tests.support.report import START, began, curve, ended, over, read, started, waited

BOX = {"gpu": "0", "uuid": "GPU-a", "instance": "box:9836"}
NAMES = ("sgs_gpu_utilization_ratio", "sgs_gpu_power_watts")


def basis(*records: Record, now: float = 1000, **more: Any) -> Basis:
    state = RunState()
    state.feed(records)
    flags = {"is_alive": False, "runs_jobs": False, **more}
    return Basis(state, records, "finished", now=START + now, program="1.0", **flags)


class Answers:
    """A Prometheus that has these values at every step."""

    url = "http://it"

    def __init__(self, labels: Mapping[str, str] = BOX, **values: float) -> None:
        self._labels = labels
        self._values = values or {NAMES[0]: 0.5, NAMES[1]: 200.0}
        self.asked: list[str] = []

    def series(self, match: str, start: float, end: float) -> list[dict[str, str]]:
        self.asked.append(match)
        self.times = (start, end)
        return [{**self._labels, "__name__": name} for name in self._values]

    def query_range(self, query: str, start: float, end: float, step: float) -> list[SeriesAnswer]:
        self.asked.append(query)
        [name] = re.findall(r"(\w+)\{", query)
        times = range(int(start), int(end) + 1, int(step))
        return [SeriesAnswer(self._labels, [(float(at), self._values[name]) for at in times])]


RUN = (began(host="box"), read(1), started(0, 1), ended(300, 1, runtime=300), over(300))


def collected(answers: Answers, of: Basis, selector: str = "") -> Any:
    return collect(answers, of, selector)  # type: ignore[arg-type] # it has what is asked of it


class TestAttempts:
    def test_they_have_the_host_on_which_they_ran(self) -> None:
        again = (began(500, host="two"), started(510, 1, 2), ended(600, 1, 2), over(600))
        placed = placed_attempts(basis(began(host="one"), read(1), started(0, 1), waited(50), *again))
        assert [(each.key, each.host) for each in placed] == [((1, 1), "one"), ((1, 2), "two")]

    def test_one_that_is_running_goes_on_until_now(self) -> None:
        run = (began(host="box"), read(1), started(10, 1))
        [running] = placed_attempts(basis(*run, is_alive=True, runs_jobs=True))
        assert running.times == (START + 10, START + 1000)
        assert placed_attempts(basis(*run)) == []  # it died as it began

    def test_those_without_a_gpu_are_left_out(self) -> None:
        assert placed_attempts(basis(began(), read(1), started(0, 1, gpus=()), ended(9, 1), over(9))) == []


class TestAsking:
    def test_each_quantity_is_asked_for_once_over_all_attempts(self) -> None:
        jobs = range(1, 101)
        times = [each for job in jobs for each in (started(job * 20, job), ended(job * 20 + 20, job, runtime=20))]
        answers = Answers()
        found = collected(answers, basis(began(host="box"), *map(read, jobs), *times, over(2020)))
        assert len(answers.asked) == 1 + len(NAMES)
        assert answers.times == (START + 20, START + 2020)
        assert (len(found.measured), found.notes) == (100, [])

    def test_maxima_are_asked_for_only_where_steps_have_several_readings(self) -> None:
        long = 86400.0
        answers = Answers()
        collected(answers, basis(began(host="box"), read(1), started(0, 1), ended(long, 1, runtime=long), over(long)))
        assert [each.split("(")[2].split()[-1] for each in answers.asked[1:]].count("max_over_time") == len(NAMES)
        assert all("[7999ms]" in each for each in answers.asked[1:])

    def test_what_is_impossible_is_no_reading(self) -> None:
        for wrong in (float("nan"), float("inf"), -1.0, 9.3e18):
            gpu = collected(Answers(**{NAMES[0]: 0.5, NAMES[1]: wrong}), basis(*RUN)).measured[1, 1]["gpus"][0]
            assert "power" not in gpu
            assert gpu["utilization"]["mean"] == 50

    def test_the_report_has_what_was_found(self) -> None:
        of = basis(*RUN)
        report = build(collected(Answers(), of).into(of))
        assert report["jobs"][0]["measured"]["gpus"][0]["utilization"] == {"mean": 50, "max": 50, "p95": 50}
        assert report["use"]["energy"] == pytest.approx(200 * 300)
        assert report["jobs"][0]["measured"]["gpus"][0]["by_power"] is True
        assert report["lanes"][0]["utilization"] == [50] * 300

    def test_own_curves_of_other_gpus_stay(self) -> None:
        of = basis(*RUN, curves={(1, 1): [curve([(0, 9.0)]), curve([(0, 8.0)], gpu="7")], (2, 1): [curve([(0, 7.0)])]})
        curves = collected(Answers(), of).into(of).curves
        assert [each.gpu for each in curves[1, 1]] == ["0", "7"]
        assert {point.means[0] for point in curves[1, 1][0].points} == {50}
        assert curves[2, 1] == of.curves[2, 1]

    def test_long_curves_are_thinned_and_figures_are_not(self) -> None:
        of = basis(began(host="box"), read(1), started(0, 1), ended(9000, 1, runtime=9000), over(9000))
        found = collected(Answers(), of)
        assert len(found.curves[1, 1][0].points) <= 600
        assert found.measured[1, 1]["gpus"][0]["seconds"] == 9000

    @pytest.mark.parametrize(
        ("answers", "said"),
        [
            (Answers({**BOX, "gpu": "1"}), 'no series of GPU 0 of box; it has those of {gpu="1",uuid="GPU-a",'),
            (Answers({**BOX, "instance": "x:1"}), """choose it with --selector, such as --selector 'instance="x:1"'"""),
            (Answers(up=1), "http://it has no series of GPUs at the time of the run: neither DCGM_FI_DEV_GPU_UTIL"),
            (Answers(**{NAMES[0]: -1}), "http://it has series of these GPUs, but no reading while an attempt ran;"),
        ],
    )
    def test_what_was_not_found_is_said(self, answers: Answers, said: str) -> None:
        with pytest.raises(UserError, match=re.escape(said)):
            collected(answers, basis(*RUN))

    def test_gpus_and_attempts_without_readings_are_noted(self) -> None:
        more = (read(2), started(0, 2, gpus=("5",)), ended(300, 2, runtime=300))
        found = collected(Answers(), basis(*RUN[:-1], *more, over(300)))
        assert found.notes == [
            "http://it has no series of GPU 5 of box",
            "http://it has readings of 1 of the 2 attempts",
        ]


def test_figures_of_a_gpu_are_replaced_as_a_whole() -> None:
    own = {"gpus": [{"gpu": "0", "clock": 1}, {"gpu": "1"}], "cpu": {"seconds": 9}}
    other = {"gpus": [{"gpu": "0", "power": 2}], "cpu": {}}
    assert replaced(own, other) == {"gpus": [{"gpu": "0", "power": 2}, {"gpu": "1"}], "cpu": {"seconds": 9}}
    assert (replaced(own, None), replaced(None, other), replaced(None, None)) == (own, other, None)
