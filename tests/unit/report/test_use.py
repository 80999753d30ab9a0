"""How well jobs and GPUs were used."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.journal.samples import DrawnCurve, curves_in
from simple_gpu_scheduler.report import use
from simple_gpu_scheduler.report.job_text import show_one
from simple_gpu_scheduler.report.lanes import GpuCurve, merged
from simple_gpu_scheduler.report.measured import has_shared, sound
from simple_gpu_scheduler.report.text import show, table
from tests.support.night import night
from tests.support.report import START, began, built, curve, ended, measured, over, read, started, use_of_gpu


def ran(at: float, until: float, job: int, *gpus: dict[str, Any], attempt: int = 1, **cpu) -> list[dict[str, Any]]:
    names = tuple(each["gpu"] for each in gpus)
    is_final = {"final": True, "runtime": until - at}
    return [
        started(at, job, attempt, names),
        measured(until, job, *gpus, attempt=attempt, **cpu),
        ended(until, job, attempt, **is_final),
    ]


class TestOfAJob:
    def test_it_has_the_gpus_of_the_last_attempt_and_sums_of_all(self) -> None:
        first = ran(0, 100, 1, use_of_gpu(mean=0, idle=100, energy=5000), seconds=7.0, cores=4, peak_memory=900)
        second = ran(100, 200, 1, use_of_gpu("1", 50, mean=80, idle=2, energy=1000), attempt=2, seconds=3.0)
        report = built(began(), read(1), *first, *second, over(200))
        found = report["jobs"][0]["measured"]
        assert [each["gpu"] for each in found["gpus"]] == ["1"]
        assert (found["held"], found["idle"], found["energy"], found["wasted"]) == (150, 102, 6000, 110)
        assert found["utilization"] == pytest.approx(40 / 1.5, abs=0.001)
        assert (found["cpu"]["seconds"], found["cpu"]["peak_memory"]) == (10, 900)
        assert [attempt["measured"]["gpus"][0]["gpu"] for attempt in report["jobs"][0]["attempts"]] == ["0", "1"]

    def test_what_was_not_measured_is_nothing_and_never_zero(self) -> None:
        report = built(began(), read(1), started(0, 1), ended(9, 1), over(9))
        assert report["jobs"][0]["measured"] is None
        assert (report["use"], report["lanes"], report["worst"], report["advice"]) == (None, [], [], [])
        assert report["gpus"][0]["measured"] is None
        text = "\n".join(show(report, None))
        assert "GPU USE" not in text
        assert "ENERGY" not in text
        headings, row = table(report)
        assert [row[[*headings].index(name)] for name in ("gpu_utilization_mean", "energy_joules")] == [None, None]

    def test_of_a_gpu_that_tells_little_the_rest_stays_unknown(self) -> None:
        found = use.job_use([{"gpu": "0", "seconds": 9.0}])
        assert found == use.JobUse(held=9.0)

    @pytest.mark.parametrize(
        ("wasted", "held", "is_worth"),
        [
            (60, 1000, True),
            (59.9, 1000, False),
            (8, 10, True),
            (7.9, 10, False),
            (1.9, 1.9, False),
            (2, 2, True),
            (None, 9, False),
        ],
    )
    def test_little_waste_counts_only_if_it_was_most_of_the_job(
        self, wasted: float, held: float, is_worth: bool
    ) -> None:
        assert use.worst([{"job": 7, "measured": {"wasted": wasted, "held": held}}], 5) == [7] * is_worth

    def test_of_a_job_without_a_gpu_only_the_cpu_is_known(self) -> None:
        records = [
            began(),
            read(1),
            started(0, 1, gpus=()),
            measured(9, 1, seconds=4.5, peak_memory=7),
            ended(9, 1),
            over(9),
        ]
        for report in (built(*records), built(*records, job=1)):
            assert report["jobs"][0]["measured"]["cpu"] == {"seconds": 4.5, "peak_memory": 7}
            assert (report["jobs"][0]["measured"]["held"], report["use"], report["worst"]) == (None, None, [])
            assert "GPU USE" not in "\n".join(show(report, 80))
        assert "CPU" in show_one(report, 80)
        headings, row = table(report)
        assert dict(zip(headings, row, strict=True))["cpu_seconds"] == 4.5


class TestOfGpus:
    def test_where_jobs_did_not_share_theirs_add_up(self) -> None:
        records = [
            *ran(0, 100, 1, use_of_gpu(mean=90, energy=9e4)),
            *ran(100, 400, 2, use_of_gpu("0", 300, 10, energy=3e4)),
        ]
        report = built(began(), read(1), read(2), *records, over(400))
        assert report["gpus"][0]["measured"] == {"measured": 400, "utilization": 30, "idle": None, "energy": 12e4}
        use = {"held": 400, "measured": 400, "utilization": 30, "wasted": 280, "idle": None, "energy": 12e4}
        assert report["use"] == use | {"held_by_failed": 0}
        assert report["worst"] == [2]  # of the other, a tenth of 100 s is no waste to speak of

    def test_the_energy_of_jobs_that_shared_a_gpu_is_not_summed(self) -> None:
        shared = {"shared": 100, "of_gpu": ["energy"], "energy": 2e4}
        records = [
            started(0, 1),
            started(0, 2),
            measured(100, 1, use_of_gpu(**shared)),
            measured(100, 2, use_of_gpu(**shared)),
        ]
        records = [
            began(),
            read(1),
            read(2),
            *records,
            ended(100, 1, runtime=100),
            ended(100, 2, runtime=100),
            over(100),
        ]
        points = [(float(at), 40.0) for at in range(0, 100, 10)]
        drawn = {(job, 1): [curve(points, power=200.0)] for job in (1, 2)}
        assert has_shared(records)
        found = built(*records, curves=drawn)["gpus"][0]["measured"]
        assert (found["energy"], found["utilization"], found["measured"]) == (pytest.approx(2e4), 80, 100)
        without = built(*records)
        assert (without["gpus"][0]["measured"], without["use"]) == (None, None)
        assert without["jobs"][0]["measured"]["energy_of_gpu"]


class TestLanes:
    def test_what_ran_at_the_same_time_adds_up_and_what_is_the_gpus_counts_once(self) -> None:
        both = [
            curve([(0, 30), (10, 70)], memory=5.0, temperature=60.0),
            curve([(0, 30), (10, 70)], memory=7.0, temperature=60.0),
        ]
        lane = merged([use_curve(each) for each in both], START, START + 20)
        assert lane.means["utilization"][:11] == [60] * 10 + [100]
        assert {*lane.means["memory"]} == {12}
        assert {*lane.means["temperature"]} == {60}
        assert lane.seconds == 20

    def test_of_a_gpu_that_does_not_tell_whose_use_it_is_no_sum_is_made(self) -> None:
        both = [use_curve(curve([(0, 30)]), frozenset({"utilization"}))] * 2
        assert merged(both, START, START + 10).means["utilization"] == [30] * 10

    def test_a_gpu_is_idle_while_none_of_its_jobs_uses_it(self) -> None:
        one, other = curve([(0, 0), (10, 0), (20, 50)]), curve([(10, 20), (20, 0)])
        lane = merged([use_curve(one), use_curve(other)], START, START + 30, most=3)
        assert lane.zeros == [10, 0, 0]
        assert lane.idle == 10

    def test_time_without_a_job_is_unknown(self) -> None:
        lane = merged([use_curve(curve([(20, 50)]))], START, START + 40, most=4)
        assert lane.means["utilization"] == [None, None, 50, None]
        assert "memory" not in lane.to_json("0")

    @given(
        st.lists(
            st.tuples(st.integers(0, 500), st.integers(0, 100), st.sampled_from([0.5, 1, 7, 64])),
            min_size=1,
            max_size=30,
        ),
        st.integers(1, 40),
    )
    def test_a_lane_loses_no_time_and_invents_none(self, pieces: list[tuple[int, int, float]], most: int) -> None:
        curves = [use_curve(curve([(at, busy)], seconds, power=100.0)) for at, busy, seconds in pieces]
        lane = merged(curves, START, START + 600, most)
        covered = {(at * 2 + half) for at, _, seconds in pieces for half in range(int(seconds * 2))}
        assert len(lane.known) <= most
        assert lane.seconds == pytest.approx(len(covered) / 2)
        assert lane.energy == pytest.approx(lane.seconds * 100)
        assert 0 <= lane.idle <= lane.seconds
        assert all(each is None or 0 <= each <= 100 for each in lane.means["utilization"])

    def test_the_lanes_of_a_night_are_thin_and_their_energy_is_that_of_the_jobs(self) -> None:
        dark = night(40, 3, most_points=50)
        assert night(40, 3, most_points=50) == dark
        report = built(*dark.records, curves=curves_in(dark.samples), now=1e5)
        assert [lane["gpu"] for lane in report["lanes"]] == ["0", "1", "2"]
        for gpu, lane in zip(report["gpus"], report["lanes"], strict=True):
            assert len(lane["utilization"]) == len(lane["power"]) <= 600
            power = zip(lane["power"], lane["seconds"], strict=True)
            energy = sum(watts * seconds for watts, seconds in power if watts is not None)
            assert energy == pytest.approx(gpu["measured"]["energy"], rel=0.01)
            idle = sum(lane["idle"])
            assert idle == pytest.approx(gpu["measured"]["idle"], rel=0.02, abs=2)


def use_curve(drawn: DrawnCurve, of_gpu: frozenset[str] = frozenset()) -> GpuCurve:
    return GpuCurve(drawn.points, of_gpu)


def test_a_figure_of_a_wrong_type_is_left_out() -> None:
    nasty = {"gpu": "0", "seconds": "9", "utilization": 5, "memory": {"mean": 1}, "energy": {"a": 1}, "throttled": [1]}
    assert sound({"gpus": [{**nasty, "of_gpu": [1, "power"], "idle": 3}], "cpu": {"seconds": {}, "cores": 2}}) == {
        "gpus": [{"gpu": "0", "seconds": 0.0, "idle": 3, "of_gpu": ["power"]}],
        "cpu": {"cores": 2},
    }


def test_advice_is_found_from_what_was_measured() -> None:
    records = ran(0, 3600, 1, use_of_gpu(seconds=3600, mean=1, idle=3500))
    report = built(began(), read(1), *records, over(3600), now=4000)
    assert any("job 1 held gpu 0" in sentence for sentence in report["advice"])


NAMES = ("gpu", "seconds", "utilization", "memory", "total_memory", "idle", "energy", "shared", "of_gpu", "throttled",
         "traffic", "xids", "mean", "max", "p95", "by_power", "pcie_sent", "power", "cores", "read")  # fmt: skip
NUMBERS = st.integers(-(10**39), 10**39) | st.floats(-1e39, 1e39) | st.integers(0, 100)
ANYTHING = st.recursive(
    NUMBERS | st.booleans() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=8),
    max_leaves=30,
)
USES = st.dictionaries(st.sampled_from(NAMES), ANYTHING).map(lambda values: values | {"gpu": "0"})


@given(st.lists(USES, max_size=2), st.dictionaries(st.sampled_from(NAMES), ANYTHING), st.booleans())
def test_whatever_an_attempt_is_said_to_have_done_can_be_reported(gpus: list[Any], cpu: Any, has_curve: bool) -> None:
    record = {"event": "attempt measured", "at": START + 9, "job": 1, "attempt": 1, "gpus": gpus, "cpu": cpu}
    records = began(), read(1), started(0, 1), record, ended(9, 1, runtime=9), over(9)
    drawn = {(1, 1): [curve([(0, -1e15), (10, 1e15)], power=1e15)]} if has_curve else {}
    report = built(*records, curves=drawn)
    json.dumps(report, allow_nan=False)
    assert show(report, 80)
    assert len([*table(report)]) == 2
    assert show_one(built(*records, curves=drawn, job=1), 80)
