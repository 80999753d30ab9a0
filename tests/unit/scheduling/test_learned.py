"""The learned policy: its file, its order, its patience; and what it is worth on workloads that it has not seen."""

import json
import subprocess
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.policies import POLICIES, Waiting
from simple_gpu_scheduler.scheduling.policies.learned import Learned, Weights, parse_weights, show_weights
from simple_gpu_scheduler.scheduling.policies.names import Chosen
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits
from simple_gpu_scheduler.simulation.compare import Site, replay
from simple_gpu_scheduler.simulation.learn.lessons import Lessons, school_of
from simple_gpu_scheduler.simulation.learn.search import START, learn
from simple_gpu_scheduler.simulation.measures import Simulated
from simple_gpu_scheduler.simulation.significance import Standing, standing
from simple_gpu_scheduler.simulation.simulate import Arrival, simulate
from tests.conftest import UNMEASURED

PATIENCE = 1000
EIGHT = tuple("01234567")

numbers = st.floats(-1e6, 1e6)
slopes = st.tuples(*[numbers] * 3)
weights = st.builds(Weights, slopes, slopes, slopes)
# Whose order is as far from that of `sjf` as it can be.
LONGEST_FIRST = Weights(length=(1.0, 0.0, 0.0))
NOT = (0.0, 0.0, 0.0)


def arrival(number, at, length, gpus=1):
    return Arrival(at, Job(number, b"x", Place(number), gpus=gpus, time=length), length)


def waiting(number, since, length, gpus):
    job = arrival(number, since, length, gpus).job
    return Waiting(Learned(START).rank(job, since, length), number, 1, job, since, length, length, (gpus, 0, 0, ""))


def queue(rng, gap=25.0, widths=(1,), size=20):
    """One of the published experiment: exponential gaps, and the logarithm of the run time uniform from 1 to 3."""
    at, jobs = 0.0, []
    for number in range(1, size + 1):
        at += rng.expovariate(1 / gap)
        jobs.append(arrival(number, at, 10 ** rng.uniform(1, 3), rng.choice(widths)))
    return jobs


def queues(seed, count, **shape):
    rng = Random(seed)
    return [queue(rng, **shape) for _ in range(count)]


def starts_of(workload, policy, gpus):
    return list(simulate(workload, Scheduler(Limits(gpus), policy), gpus))


@st.composite
def workloads(draw, last=99, longest=2_000_000, widths=4):
    """Times in whole seconds, the last arrival before anybody's patience ends."""
    ats = sorted(draw(st.lists(st.integers(0, last), min_size=1, max_size=30)))
    lengths = st.integers(1, 20) | st.integers(1, longest)
    return [arrival(number, at, draw(lengths), draw(st.integers(1, widths))) for number, at in enumerate(ats, start=1)]


class TestFile:
    @given(weights)
    def test_what_is_shown_is_read_as_the_same(self, some):
        assert parse_weights(show_weights(some)) == some

    def test_shows_each_number_by_its_name(self):
        some = Weights((-1.0, 0.5, 0.0), (0.0, 0.25, 0.0), (-2.0, 0.0, 1.0))
        assert json.loads(show_weights(some)) == {
            "version": 1,
            "kind": "linear",
            "length": [-1.0, 0.5, 0.0],
            "wait": [0.0, 0.25, 0.0],
            "gpus": [-2.0, 0.0, 1.0],
        }

    def test_whole_numbers_are_numbers(self):
        text = '{"version": 1, "kind": "linear", "length": [-1, 0, 0], "wait": [0, 0, 0], "gpus": [0, 0, 0]}'
        assert parse_weights(text) == START

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"version": 2}, "its version is not 1"),
            ({"version": True}, "its version is not 1"),
            ({"version": "1"}, "its version is not 1"),
            ({"version": [1]}, "its version is not 1"),
            ({"version": ...}, 'no "version"'),
            ({"kind": "deep"}, 'its "kind" is not "linear"'),
            ({"kind": ["linear"]}, 'its "kind" is not "linear"'),
            ({"kind": ...}, 'its "kind" is not "linear"'),
            ({"units": []}, "names beside gpus, kind, length, version, wait"),
            ({"wait": ...}, 'no "wait"'),
            ({"length": [1, 2]}, '"length" is not a list of 3 numbers'),
            ({"length": {"0": 1}}, '"length" is not a list of 3 numbers'),
            ({"gpus": [1, 2, "3"]}, '"gpus" has something that is no number from -1,000,000 to 1,000,000'),
            ({"gpus": [1, 2, float("nan")]}, '"gpus" has something'),
            ({"gpus": [1, 2, float("-inf")]}, '"gpus" has something'),
            ({"gpus": [1, 2, True]}, '"gpus" has something'),
            ({"gpus": [1, 2, None]}, '"gpus" has something'),
            ({"gpus": [1, 2, 10**400]}, '"gpus" has something'),
            ({"gpus": [1, 2, 1_000_001]}, '"gpus" has something'),
            ({"gpus": [1, 2, -1_000_001]}, '"gpus" has something'),
        ],
    )
    def test_says_what_is_wrong(self, change, sentence):
        record = json.loads(show_weights(START)) | change
        text = json.dumps({name: value for name, value in record.items() if value is not ...})
        with pytest.raises(ValueError, match=r"^it") as caught:
            parse_weights(text)
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("text", ["", "{", "[1]", "null", "3", '"x"', "[" * 90_000, " " * 200_000, "1" * 5_000])
    def test_refuses_what_is_something_else(self, text):
        with pytest.raises(ValueError, match=r"^it .* so it holds no learned weights$"):
            parse_weights(text)

    def test_is_read_without_numpy_or_the_simulator(self):
        script = "import sys, simple_gpu_scheduler.scheduling.policies.learned; print(*sys.modules, sep='\\n')"
        loaded = subprocess.run(
            [sys.executable, "-c", script], env=UNMEASURED, capture_output=True, text=True, check=True
        ).stdout
        assert not {"numpy", "random", "statistics", "simple_gpu_scheduler.simulation.simulate"} & set(loaded.split())


class TestOrder:
    @given(workloads())
    def test_before_it_has_learned_it_starts_all_when_sjf_does(self, workload):
        gpus = EIGHT[:4]
        assert starts_of(workload, Learned(START), gpus) == starts_of(workload, POLICIES["sjf"](), gpus)

    @pytest.mark.parametrize(
        ("some", "load", "order"),
        [
            (LONGEST_FIRST, (0.5, 3), [1, 3, 2]),
            (Weights(gpus=(-9.0, 0.0, 0.0)), (0.5, 3), [2, 1, 3]),
            (Weights(length=NOT, gpus=(1.0, 0.0, 0.0)), (0.5, 3), [3, 1, 2]),
            (Weights(length=NOT, wait=(1.0, 0.0, 0.0)), (0.5, 3), [1, 2, 3]),
            (Weights(length=NOT, wait=(-1.0, 0.0, 0.0)), (0.5, 3), [3, 2, 1]),
            (Weights(length=(1.0, -1.0, 0.0)), (0.5, 3), [1, 3, 2]),
            (Weights(length=(1.0, -1.0, 0.0)), (0.5, 300), [2, 3, 1]),
            (Weights(length=(1.0, 0.0, -2.0)), (0.2, 3), [1, 3, 2]),
            (Weights(length=(1.0, 0.0, -2.0)), (0.8, 3), [2, 3, 1]),
        ],
    )
    def test_follows_its_weights(self, some, load, order):
        # By number: 40 s on 2 GPUs, 10 s on 1 and 30 s on 4, which have waited for 49, 40 and 30 s.
        heads = [waiting(1, 1, 40, 2), waiting(2, 10, 10, 1), waiting(3, 20, 30, 4)]
        assert [each.number for each in Learned(some).ordered(heads, 50.0, load)] == order

    @pytest.mark.parametrize(
        ("some", "heads", "load", "order"),
        [
            # Three logarithms of a count are worth as much as seven of a length: log(8) - log(10) is between these two.
            (Weights(length=(-7.0, 0.0, 0.0), gpus=(3.0, 0.0, 0.0)), [(9, 8), (0.1, 1)], (0.5, 2), [2, 1]),
            (Weights(length=(-7.0, 0.0, 0.0), gpus=(3.0, 0.0, 0.0)), [(9, 8), (0.4, 1)], (0.5, 2), [1, 2]),
            # A third of log(count + 1) becomes one between 19 and 20 that wait.
            (Weights(length=(1.0, -1.0, 0.0)), [(10, 1), (20, 1)], (0.5, 19), [2, 1]),
            (Weights(length=(1.0, -1.0, 0.0)), [(10, 1), (20, 1)], (0.5, 20), [1, 2]),
        ],
    )
    def test_a_file_that_was_learned_means_the_same_for_ever(self, some, heads, load, order):
        each = [waiting(number, 0, length, gpus) for number, (length, gpus) in enumerate(heads, 1)]
        assert [head.number for head in Learned(some).ordered(each, 0.0, load)] == order

    def test_without_having_learned_the_length_alone_counts(self):
        assert Weights() == Weights((-1.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))

    @given(weights, workloads(last=3000, longest=60), st.floats(0, 1), st.floats(0, 10_000))
    def test_who_is_first_is_the_first_in_the_order(self, some, workload, in_use, later):
        policy = Learned(some)
        heads = [waiting(each.job.number, each.at, each.duration, each.job.gpus) for each in workload]
        now, load = workload[-1].at + later, (in_use, len(workload))
        assert policy.first(heads, now, load) == policy.ordered(heads, now, load)[0]

    def test_a_cpu_job_no_time_and_a_clock_that_goes_back_are_no_errors(self):
        some = Weights(wait=(1.0, 1.0, 1.0))
        heads = [waiting(1, 10, 0, 0), waiting(2, 10, 5, 1)]
        assert Learned(some).first(heads, 3.0, (0.0, 0)) in heads

    @settings(max_examples=300)
    @given(workloads(last=30_000, longest=60, widths=1), weights | st.just(LONGEST_FIRST), st.integers(1, 2))
    def test_nobody_is_passed_by_who_came_later_by_more_than_his_patience(self, workload, some, gpus):
        starts = starts_of(workload, Learned(some), EIGHT[:gpus])
        for first, start in zip(workload, starts, strict=True):
            end = first.at + PATIENCE * first.duration
            later = [each for each, other in zip(workload, starts, strict=True) if each.at > end and other < start]
            assert not later

    @pytest.mark.parametrize("short", [1, 9])
    def test_patience_is_kept_when_the_worst_weights_would_starve_somebody(self, short):
        # Two short ones in one queue, behind a stream of long ones that keeps the GPU busy for ever.
        stream = [arrival(number, 50.0 * (number - 3), 60) for number in range(4, 250)]
        workload = sorted(
            [arrival(1, 0, 60), arrival(2, 0, 15), arrival(3, 1, short), *stream], key=lambda each: each.at
        )
        workload = [each._replace(job=each.job._replace(number=at)) for at, each in enumerate(workload, start=1)]
        starts = starts_of(workload, Learned(LONGEST_FIRST), ("0",))
        at = next(at for at, each in enumerate(workload) if each.duration == short)
        passed_by = [each.at for each, start in zip(workload, starts, strict=True) if start < starts[at]]
        assert max(passed_by) <= 1 + PATIENCE * short
        assert starts[at] > 1 + PATIENCE * short  # it was passed for as long as may be

    def test_patience_is_kept_among_those_of_one_queue(self):
        # The second takes about as long as all the others, who come as fast as they can run.
        stream = [arrival(number, 10.0 * (number - 2), 10) for number in range(3, 1700)]
        workload = [arrival(1, 0, 10), arrival(2, 0, 15), *stream]
        starts = starts_of(workload, Learned(START), ("0",))
        assert 10 < starts[1] <= PATIENCE * 15


def lessons(seed, count, **shape):
    """A third of them to choose by."""
    some = queues(seed, count, **shape)
    return Lessons(some[count // 3 :], some[: count // 3])


def compare(workloads, policies, other, gpus):
    """How each policy does, against one of them, on the same workloads."""
    sizes = [len(workload) for workload in workloads]
    waits = {
        name: [sum(Simulated(each, replay(each, Chosen(name, make), Site(gpus))).waits()) for each in workloads]
        for name, make in policies.items()
    }
    return {name: standing(mine, waits[other], sizes) for name, mine in waits.items()}


class TestLearning:
    @pytest.mark.unmeasured
    def test_the_same_seed_gives_the_same_weights_within_the_budget(self):
        simulated = []
        site = Site(8, lambda: simulated.append(20) or Estimates())
        given_queues = lessons(1, 300, gap=12, widths=(1, 1, 2, 4))
        heard = []
        one = learn(given_queues, site, 5, budget=80_000, say=heard.append)
        assert 60_000 < sum(simulated) <= 80_000 + 20 * len(given_queues.to_choose)  # and one look at whether any wait
        assert one == learn(given_queues, Site(8), 5, budget=80_000)
        assert heard[0].startswith("generation 1 of ")
        assert heard[-1].split(":")[0] == f"generation {len(heard)} of {len(heard)}"
        assert one != learn(given_queues, Site(8), 6, budget=80_000)

    @pytest.mark.unmeasured
    def test_on_the_published_queues_it_is_no_worse_than_sjf(self):
        weights = learn(lessons("learn", 300), Site(2), 1, budget=120_000)
        policies = {"sjf": POLICIES["sjf"], "learned": lambda: Learned(weights), "fifo": POLICIES["fifo"]}
        standings = compare(queues("held out", 1000), policies, "sjf", 2)
        assert standings["learned"].percent < 0.01
        assert standings["fifo"].in_words("fifo", "sjf").startswith("fifo loses to sjf by 10")

    @pytest.mark.unmeasured
    def test_on_wide_jobs_it_beats_sjf(self):
        shape = {"gap": 12, "widths": (1, 1, 2, 4)}
        weights = learn(lessons("learn", 500, **shape), Site(8), 1, budget=200_000)
        assert weights != START
        policies = {"sjf": POLICIES["sjf"], "learned": lambda: Learned(weights)}
        beside = compare(queues("held out", 1000, **shape), policies, "sjf", 8)["learned"]
        assert beside.is_surely_less
        assert beside.difference < -0.01 * beside.wait

    def test_where_nothing_can_be_won_the_start_is_kept(self):
        same = [[arrival(number, 0, 5) for number in range(1, 6)]] * 12
        assert learn(Lessons(same, same), Site(2), 1, budget=20_000) == START

    def test_says_why_it_cannot_learn(self):
        with pytest.raises(ValueError, match="nobody waits in the parts"):
            learn(Lessons(*[[[arrival(1, 0, 5), arrival(2, 9, 5)]] * 5] * 2), Site(2), 1)
        with pytest.raises(ValueError, match="a workload has 20 jobs, too many"):
            learn(lessons(1, 30), Site(2), 1, budget=500)

    def test_it_learns_by_the_estimates_that_it_is_told_of(self):
        knows_nothing = Site(2, lambda: Estimates(learns=False))
        unknown = [
            [each._replace(job=each.job._replace(time=None)) for each in workload] for workload in queues(1, 60, gap=12)
        ]
        assert learn(Lessons(unknown[20:], unknown[:20]), knows_nothing, 1, budget=50_000) == START


class TestSchool:
    @given(st.integers(600, 5000), st.integers(1, 600))
    def test_of_one_trace_no_job_is_in_two_of_what_is_compared(self, jobs, gpus):
        whole = [arrival(number, number, number) for number in range(1, jobs + 1)]  # each has a length of its own
        school = school_of([whole], gpus, 1)
        learned, chosen = ([each.duration for part in parts for each in part] for parts in school.lessons)
        parts, [second] = (workloads for _, workloads in school.exams)
        examined = [each.duration for part in parts for each in part]
        assert len(school.lessons.to_choose) >= 5
        assert max(learned) < min(chosen) <= max(chosen) <= jobs // 2 < min(examined)
        assert len(set(chosen)) == len(chosen)
        assert len(set(examined)) == len(examined)
        assert [each.duration for each in second] == [*range(jobs // 2 + 1, jobs + 1)]
        for part in (*school.lessons.to_learn[:3], *parts):
            assert [each.job.number for each in part] == [*range(1, len(part) + 1)]
            assert part[0].at == 0

    def test_of_many_none_is_in_two(self):
        many = queues(1, 31)
        school = school_of(many, 2, 1)
        [(_, examined)] = school.exams
        assert sorted(map(id, (*school.lessons.to_learn, *school.lessons.to_choose, *examined))) == sorted(
            map(id, many)
        )

    def test_says_when_it_is_too_little(self):
        with pytest.raises(ValueError, match=r"^there are 29 workloads, and it takes 30$"):
            school_of(queues(1, 29), 2, 1)
        with pytest.raises(ValueError, match=r"^it has 599 jobs, and it takes 600$"):
            school_of([queue(Random(1), size=599)], 2, 1)


class TestStanding:
    def test_is_of_all_jobs_and_paired(self):
        # One GPU. Behind 10 s wait 8 s and 1 s: fifo (10 + 18), sjf (11 + 10). In the other workload nobody waits.
        busy = [arrival(1, 0, 10), arrival(2, 0, 8), arrival(3, 0, 1)]
        busy = [busy[0], *(each._replace(at=1.0) for each in busy[1:])]
        idle = [arrival(1, 0, 1)]
        standings = compare([busy, idle], {"fifo": POLICIES["fifo"], "sjf": POLICIES["sjf"]}, "fifo", 1)
        assert standings["fifo"] == Standing(26 / 4, 0.0, 0.0)
        assert standings["sjf"][:2] == (19 / 4, -7 / 4)
        # Each workload's rest beside the common difference a job: -7 + 3 * 7/4 and 7/4, whose squares are alike.
        assert standings["sjf"].error == pytest.approx((2 * 2 * 1.75**2) ** 0.5 / 4)

    def test_the_error_says_how_far_the_difference_lies_from_the_true_one(self):
        policies = {name: POLICIES[name] for name in ("sjf", "hrrn")}
        true = compare(queues("true", 3000), policies, "sjf", 2)["hrrn"].difference
        some = [compare(queues(seed, 60), policies, "sjf", 2)["hrrn"] for seed in range(40)]
        within = sum(abs(each.difference - true) < 2 * each.error for each in some)
        assert 33 <= within <= 40
        assert sum(abs(each.difference - true) < 0.5 * each.error for each in some) < 30

    @pytest.mark.parametrize(
        ("standing", "sentence"),
        [
            (Standing(98.8, -1.2, 0.5), "a beats b by 1.20 % ± 0.50 %"),
            (Standing(101.2, 1.2, 0.5), "a loses to b by 1.20 % ± 0.50 %"),
            (Standing(99.1, -0.9, 0.5), "a does not beat b, nor does it lose: -0.90 % ± 0.50 %"),
            (Standing(100.01, 0.01, 0.0), "a does not beat b, nor does it lose: +0.01 % ± 0.00 %"),
            (Standing(0.0, 0.0, 0.0), "a does not beat b, nor does it lose: +0.00 % ± 0.00 %"),
        ],
    )
    def test_is_told_honestly(self, standing, sentence):
        assert standing.in_words("a", "b") == sentence
