"""The learned policy: its file, its order, its patience; and what it is worth on workloads that it has not seen."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.scheduling.policies import POLICIES, WaitingJob
from simple_gpu_scheduler.scheduling.policies.learned import Learned, Weights, parse_weights, show_weights
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits
from simple_gpu_scheduler.simulation.learn.search import START
from simple_gpu_scheduler.simulation.simulate import simulate
from tests.support.queues import arrival, workloads

PATIENCE = 1000
EIGHT = tuple("01234567")

numbers = st.floats(-1e6, 1e6)
slopes = st.tuples(*[numbers] * 3)
weights = st.builds(Weights, slopes, slopes, slopes)
# Whose order is as far from that of `sjf` as it can be.
LONGEST_FIRST = Weights(length=(1.0, 0.0, 0.0))
NOT = (0.0, 0.0, 0.0)


def waiting(number, since, length, gpus):
    job = arrival(number, since, length, gpus).job
    return WaitingJob(
        Learned(START).rank(job, since, length), number, 1, job, since, length, length, (gpus, 0, 0, "", False)
    )


def starts_of(workload, policy, gpus):
    return list(simulate(workload, Scheduler(Limits(gpus), policy), gpus))


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
            ({"units": []}, "keys other than gpus, kind, length, version, wait"),
            ({"wait": ...}, 'no "wait"'),
            ({"length": [1, 2]}, '"length" is not a list of 3 numbers'),
            ({"length": {"0": 1}}, '"length" is not a list of 3 numbers'),
            ({"gpus": [1, 2, "3"]}, '"gpus" holds something other than numbers from -1,000,000 to 1,000,000'),
            ({"gpus": [1, 2, float("nan")]}, '"gpus" holds something'),
            ({"gpus": [1, 2, float("-inf")]}, '"gpus" holds something'),
            ({"gpus": [1, 2, True]}, '"gpus" holds something'),
            ({"gpus": [1, 2, None]}, '"gpus" holds something'),
            ({"gpus": [1, 2, 10**400]}, '"gpus" holds something'),
            ({"gpus": [1, 2, 1_000_001]}, '"gpus" holds something'),
            ({"gpus": [1, 2, -1_000_001]}, '"gpus" holds something'),
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
        with pytest.raises(ValueError, match=r"^it .* so it is not a weights file$"):
            parse_weights(text)


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
    def test_the_first_is_the_first_in_the_order(self, some, workload, in_use, later):
        policy = Learned(some)
        heads = [waiting(each.job.number, each.at, each.length, each.job.gpus) for each in workload]
        now, load = workload[-1].at + later, (in_use, len(workload))
        assert policy.first(heads, now, load) == policy.ordered(heads, now, load)[0]

    def test_a_cpu_job_no_time_and_a_clock_that_goes_back_are_no_errors(self):
        some = Weights(wait=(1.0, 1.0, 1.0))
        heads = [waiting(1, 10, 0, 0), waiting(2, 10, 5, 1)]
        assert Learned(some).first(heads, 3.0, (0.0, 0)) in heads

    @settings(max_examples=100)
    @given(workloads(last=30_000, longest=60, widths=1), weights | st.just(LONGEST_FIRST), st.integers(1, 2))
    def test_no_job_is_passed_by_one_that_came_later_by_more_than_its_patience(self, workload, some, gpus):
        starts = starts_of(workload, Learned(some), EIGHT[:gpus])
        for first, start in zip(workload, starts, strict=True):
            end = first.at + PATIENCE * first.length
            later = [each for each, other in zip(workload, starts, strict=True) if each.at > end and other < start]
            assert not later

    @pytest.mark.parametrize("short", [1, 9])
    def test_patience_is_kept_when_the_worst_weights_would_starve_a_job(self, short):
        # Two short ones in one queue, behind a stream of long ones that keeps the GPU busy for ever.
        stream = [arrival(number, 50.0 * (number - 3), 60) for number in range(4, 250)]
        workload = sorted(
            [arrival(1, 0, 60), arrival(2, 0, 15), arrival(3, 1, short), *stream], key=lambda each: each.at
        )
        workload = [each._replace(job=each.job._replace(number=at)) for at, each in enumerate(workload, start=1)]
        starts = starts_of(workload, Learned(LONGEST_FIRST), ("0",))
        at = next(at for at, each in enumerate(workload) if each.length == short)
        passed_by = [each.at for each, start in zip(workload, starts, strict=True) if start < starts[at]]
        assert max(passed_by) <= 1 + PATIENCE * short
        assert starts[at] > 1 + PATIENCE * short  # it was passed for as long as may be

    def test_patience_is_kept_among_those_of_one_queue(self):
        # The second takes about as long as all the others, which come as fast as they can run.
        stream = [arrival(number, 10.0 * (number - 2), 10) for number in range(3, 1700)]
        workload = [arrival(1, 0, 10), arrival(2, 0, 15), *stream]
        starts = starts_of(workload, Learned(START), ("0",))
        assert 10 < starts[1] <= PATIENCE * 15
