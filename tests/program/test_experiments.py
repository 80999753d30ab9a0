"""Long simulations: what was published comes out again, learning pays, no job starves, and real traces are read."""

from statistics import fmean, quantiles
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.policies.learned import Learned
from simple_gpu_scheduler.scheduling.policies.names import parse_policy
from simple_gpu_scheduler.simulation.compare import Site, compare
from simple_gpu_scheduler.simulation.learn.search import START, learn
from simple_gpu_scheduler.simulation.workloads.csv import read_csv
from simple_gpu_scheduler.simulation.workloads.jobs import WorkloadJob, arrivals
from simple_gpu_scheduler.simulation.workloads.synthetic import generate, parse_synthetic
from tests.conftest import ROOT
from tests.support.lessons import lessons, queues, standings_of
from tests.unit.scheduling.test_backfill import word
from tests.unit.scheduling.test_golden_starts import LARGE, NAMES, REPLAYED, recorded, replay
from tests.unit.scheduling.test_policies import DAY, Spec
from tests.unit.scheduling.test_starving import FAIR_TO_ALL, start_among
from tests.unit.simulation.test_workloads import templates

TRACES = ROOT.parent / "shared" / "traces"
pytestmark = pytest.mark.unmeasured  # which would take them three times as long


def test_the_published_experiment_comes_out_as_published() -> None:
    words = parse_synthetic("jobs=20 gap=25 time=10-1000")
    workloads = [arrivals(generate(words, 2, seed), 2, "exact")[0] for seed in range(2000)]
    published = {"fifo": (686, 564), "sjf": (334, 252), "aged": (367, 289)}
    policies = [parse_policy(name, str) for name in published]
    for result in compare(workloads, policies, Site(2)):
        mean, single = published[result.policy]
        means = [fmean(each.waits()) for each in result.simulated]
        assert fmean(means) == pytest.approx(mean, rel=0.03)
        quarter, half, _ = quantiles(means, n=4)
        assert quarter < single < half


@pytest.mark.parametrize("name", ["philly.csv", "gaia.csv"])
def test_real_traces_are_simulated_whole(name: str) -> None:
    path = ROOT.parent / "shared" / "traces" / name
    if not path.exists():
        pytest.skip("the trace is not there")
    workload, _ = arrivals(read_csv(path.read_text())[0][:3000], 64, "exact")
    for result in compare([workload], [parse_policy(policy, str) for policy in ("fifo", "hrrn")], Site(64)):
        [simulated] = result.simulated
        assert all(0 <= wait < float("inf") for wait in simulated.waits())


class TestLearning:
    def test_the_same_seed_gives_the_same_weights_within_the_budget(self):
        simulated = []
        site = Site(8, lambda: simulated.append(20) or Estimates())
        given_queues = lessons(1, 300, gap=12, widths=(1, 1, 2, 4))
        heard = []
        one = learn(given_queues, site, 5, budget=40_000, say=heard.append)
        assert 30_000 < sum(simulated) <= 40_000 + 20 * len(given_queues.to_choose)  # and one look at whether any wait
        assert one == learn(given_queues, Site(8), 5, budget=40_000)
        assert heard[0].startswith("generation 1 of ")
        assert heard[-1].split(":")[0] == f"generation {len(heard)} of {len(heard)}"
        assert one != learn(given_queues, Site(8), 6, budget=40_000)

    def test_on_the_published_queues_it_is_no_worse_than_sjf(self):
        weights = learn(lessons("learn", 300), Site(2), 1, budget=120_000)
        policies = {"sjf": POLICIES["sjf"], "learned": lambda: Learned(weights), "fifo": POLICIES["fifo"]}
        standings = standings_of(queues("held out", 1000), policies, "sjf", 2)
        assert standings["learned"].percent < 0.01
        assert standings["fifo"].in_words("fifo", "sjf").startswith("fifo loses to sjf by 10")

    def test_on_wide_jobs_it_beats_sjf(self):
        shape = {"gap": 12, "widths": (1, 1, 2, 4)}
        weights = learn(lessons("learn", 500, **shape), Site(8), 1, budget=200_000)
        assert weights != START
        policies = {"sjf": POLICIES["sjf"], "learned": lambda: Learned(weights)}
        beside = standings_of(queues("held out", 1000, **shape), policies, "sjf", 8)["learned"]
        assert beside.is_surely_less
        assert beside.difference < -0.01 * beside.wait


class TestStanding:
    def test_the_error_says_how_far_the_difference_lies_from_the_true_one(self):
        policies = {name: POLICIES[name] for name in ("sjf", "hrrn")}
        true = standings_of(queues("true", 3000), policies, "sjf", 2)["hrrn"].difference
        some = [standings_of(queues(seed, 60), policies, "sjf", 2)["hrrn"] for seed in range(40)]
        within = sum(abs(each.difference - true) < 2 * each.error for each in some)
        assert 33 <= within <= 40
        assert sum(abs(each.difference - true) < 0.5 * each.error for each in some) < 30


@pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not beside the repository")
@pytest.mark.parametrize(
    ("name", "count", "first", "remarks"),
    [
        ("philly", 82_247, WorkloadJob(0, 2240194, 8, "7f04ca"), []),
        ("gaia", 51_987 - 28, WorkloadJob(0, 35541, 160, "1", 108000), ["28 rows without a duration are left out"]),
    ],
)
def test_real_traces_are_read_whole(name, count, first, remarks) -> None:
    jobs, said = read_csv((TRACES / f"{name}.csv").read_text())
    assert (len(jobs), jobs[0], said) == (count, first, remarks)
    found, _ = arrivals(jobs, 4096, "past")
    assert len(found) == count
    assert len(set(templates(jobs))) == len({(job.user, job.gpus) for job in jobs})


class Flow(NamedTuple):
    """Jobs that come again and again."""

    gap: int
    begin: int
    like: Spec
    has_new_labels: bool
    has_new_templates: bool

    def until(self, end: float) -> list[Spec]:
        return [self._one(number, at) for number, at in enumerate(range(self.begin, int(end), self.gap))]

    def _one(self, number: int, at: int) -> Spec:
        label = f"{self.like.label}{number}" if self.has_new_labels else self.like.label
        name = word(number) if self.has_new_templates else self.like.name
        return self.like._replace(at=at, label=label, name=name)


GPUS = 3
lengths = st.integers(100, 3000).map(float)


@st.composite
def specs(draw: st.DrawFn, latest: int = 0) -> Spec:
    length = draw(lengths)
    said = draw(st.sampled_from([None, length, length, length / 2, length * 2]))
    return Spec(
        draw(st.integers(0, latest)), length, said, draw(st.sampled_from("ab")), draw(st.integers(1, GPUS)),
        draw(st.integers(0, 2)), draw(st.sampled_from(["train", "eval"])),
    )  # fmt: skip


flows = st.builds(Flow, st.integers(400, 1500), st.integers(0, 3000), specs(), st.booleans(), st.booleans())


@pytest.mark.parametrize("policy", FAIR_TO_ALL)
@settings(max_examples=8, deadline=None)
@given(specs(latest=400), st.lists(flows, min_size=1, max_size=3))
def test_no_job_starves_in_random_streams(policy: str, victim: Spec, streams: list[Flow]) -> None:
    def start(end: float) -> float:
        jobs = [victim._replace(name="victim"), *(spec for flow in streams for spec in flow.until(end))]
        return start_among(jobs, policy, GPUS)[0]

    # A job that comes later than these passes none: 200 lengths of 6,000 s at most, or some turns of a day each.
    days = 15 if policy == "hrrn" else 6
    assert start(days * DAY) == start((days + 1) * DAY)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", LARGE)
def test_a_large_workload_is_replayed_as_it_was_recorded(case: str, name: str) -> None:
    if REPLAYED[case].trace and not TRACES.is_dir():
        pytest.skip("the real traces are not beside the repository")
    assert replay(name, REPLAYED[case]) == recorded()[case][name]
