"""Learning: what it learns from, what it finds, and how it is compared."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.simulation.compare import Site
from simple_gpu_scheduler.simulation.learn.lessons import Lessons, school_of
from simple_gpu_scheduler.simulation.learn.search import START, learn
from simple_gpu_scheduler.simulation.significance import Standing
from tests.support.lessons import lessons, queue, queues, standings_of
from tests.support.queues import arrival


class TestLearning:
    def test_where_nothing_can_be_won_the_start_is_kept(self):
        same = [[arrival(number, 0, 5) for number in range(1, 6)]] * 12
        assert learn(Lessons(same, same), Site(2), 1, budget=20_000) == START

    def test_says_why_it_cannot_learn(self):
        with pytest.raises(ValueError, match="no job waits in any of its parts"):
            learn(Lessons(*[[[arrival(1, 0, 5), arrival(2, 9, 5)]] * 5] * 2), Site(2), 1)
        with pytest.raises(ValueError, match="a workload has 20 jobs, too many"):
            learn(lessons(1, 30), Site(2), 1, budget=500)

    def test_it_learns_with_the_estimates_that_it_is_given(self):
        knows_nothing = Site(2, lambda: Estimates(learns=False))
        unknown = [
            [each._replace(job=each.job._replace(time=None)) for each in workload] for workload in queues(1, 60, gap=12)
        ]
        assert learn(Lessons(unknown[20:], unknown[:20]), knows_nothing, 1, budget=50_000) == START


class TestSchool:
    @settings(max_examples=12)
    @given(st.integers(600, 2000), st.integers(1, 600))
    def test_of_one_trace_no_job_is_in_two_of_what_is_compared(self, jobs, gpus):
        whole = [arrival(number, number, number) for number in range(1, jobs + 1)]  # each has a length of its own
        school = school_of([whole], gpus, 1)
        learned, chosen = ([each.length for part in parts for each in part] for parts in school.lessons)
        parts, [second] = (workloads for _, workloads in school.exams)
        examined = [each.length for part in parts for each in part]
        assert len(school.lessons.to_choose) >= 5
        assert max(learned) < min(chosen) <= max(chosen) <= jobs // 2 < min(examined)
        assert len(set(chosen)) == len(chosen)
        assert len(set(examined)) == len(examined)
        assert [each.length for each in second] == [*range(jobs // 2 + 1, jobs + 1)]
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
        with pytest.raises(ValueError, match=r"^there are 29 workloads, and at least 30 are needed$"):
            school_of(queues(1, 29), 2, 1)
        with pytest.raises(ValueError, match=r"^it has 599 jobs, and at least 600 are needed$"):
            school_of([queue(Random(1), size=599)], 2, 1)


class TestStanding:
    def test_is_of_all_jobs_and_paired(self):
        # One GPU. Behind 10 s wait 8 s and 1 s: fifo (10 + 18), sjf (11 + 10). In the other workload no job waits.
        busy = [arrival(1, 0, 10), arrival(2, 0, 8), arrival(3, 0, 1)]
        busy = [busy[0], *(each._replace(at=1.0) for each in busy[1:])]
        idle = [arrival(1, 0, 1)]
        standings = standings_of([busy, idle], {"fifo": POLICIES["fifo"], "sjf": POLICIES["sjf"]}, "fifo", 1)
        assert standings["fifo"] == Standing(26 / 4, 0.0, 0.0)
        assert standings["sjf"][:2] == (19 / 4, -7 / 4)
        # Each workload's rest beside the common difference a job: -7 + 3 * 7/4 and 7/4, whose squares are alike.
        assert standings["sjf"].error == pytest.approx((2 * 2 * 1.75**2) ** 0.5 / 4)

    @pytest.mark.parametrize(
        ("standing", "sentence"),
        [
            (Standing(98.8, -1.2, 0.5), "a beats b by 1.20 % ± 0.50 %"),
            (Standing(101.2, 1.2, 0.5), "a loses to b by 1.20 % ± 0.50 %"),
            (Standing(99.1, -0.9, 0.5), "a neither beats nor loses to b: -0.90 % ± 0.50 %"),
            (Standing(100.01, 0.01, 0.0), "a neither beats nor loses to b: +0.01 % ± 0.00 %"),
            (Standing(0.0, 0.0, 0.0), "a neither beats nor loses to b: +0.00 % ± 0.00 %"),
        ],
    )
    def test_is_reported_honestly(self, standing, sentence):
        assert standing.in_words("a", "b") == sentence
