"""When a GPU is at fault: the bounds, and what is asked meanwhile."""

from collections.abc import Callable
from random import Random

import pytest

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.scheduling.quarantine import QUICK, Failure, Quarantine

FAILURE = Outcome("failed", 1)
NEVER = float("inf")


def attempt(number: int, *gpus: str) -> Attempt:
    return Attempt(Job(number, b"true", Place(number), len(gpus)), 1, gpus, (0,))


def nothing() -> list[tuple[Attempt, float]]:
    return []


def running(**runtimes: float) -> Callable[[], list[tuple[Attempt, float]]]:
    return lambda: [(attempt(900 + at, gpu), runtime) for at, (gpu, runtime) in enumerate(runtimes.items())]


class Told:
    """A quarantine that records ends, each of another job."""

    def __init__(self, limit: int = 2) -> None:
        self.quarantine = Quarantine(limit)
        self.number = 0

    def end(self, gpu: str, outcome: Outcome = FAILURE, length: float = 1.0, *, is_final: bool = True) -> int:
        self.number += 1
        failure = Failure(attempt(self.number, gpu), outcome)
        verdict = self.quarantine.record(failure, length, is_final=is_final)
        assert verdict == ((), ())
        return self.number

    def again(self, number: int, gpu: str, outcome: Outcome, *, is_final: bool = True) -> tuple[list[str], list[str]]:
        verdict = self.quarantine.record(Failure(attempt(number, gpu), outcome), 1.0, is_final=is_final)
        return list(verdict.cleared), list(verdict.convicted)


def test_as_many_failures_as_the_limit_are_enough_and_one_less_is_not() -> None:
    told = Told(limit=2)
    told.end("b")
    told.end("a", SUCCESS)
    assert told.quarantine.review(nothing) == []
    failed = told.end("b")
    [aside] = told.quarantine.review(nothing)
    assert (aside.gpu, aside.in_a_row) == ("b", 2)
    assert [each.attempt.job.number for each in aside.failures] == [1, failed]
    assert told.quarantine.review(nothing) == [], "it is said once"


def test_a_limit_of_nought_sets_nothing_aside() -> None:
    told = Told(limit=0)
    for _ in range(5):
        told.end("b")
    told.end("a", SUCCESS)
    assert told.quarantine.review(nothing) == []


@pytest.mark.parametrize(("length", "is_aside"), [(QUICK - 0.1, True), (QUICK, False)])
def test_a_failure_is_quick_below_ten_seconds(length: float, is_aside: bool) -> None:
    told = Told()
    for _ in range(2):
        told.end("b", length=length)
    told.end("a", SUCCESS)
    assert bool(told.quarantine.review(nothing)) == is_aside


@pytest.mark.parametrize(("runtime", "is_aside"), [(QUICK, True), (QUICK - 0.1, False)])
def test_a_job_that_runs_elsewhere_for_ten_seconds_counts_as_good(runtime: float, is_aside: bool) -> None:
    told = Told()
    for _ in range(2):
        told.end("b")
    assert bool(told.quarantine.review(running(a=runtime))) == is_aside
    assert list(told.quarantine.suspended) == ([] if is_aside else ["b"])
    assert told.quarantine.next_wake(running(a=runtime)) == (NEVER if is_aside else pytest.approx(QUICK - runtime))


def test_what_runs_on_the_gpu_itself_or_without_one_tells_nothing() -> None:
    told = Told()
    for _ in range(2):
        told.end("b")
    assert told.quarantine.review(running(b=100.0)) == []
    assert told.quarantine.review(lambda: [(attempt(900), 100.0)]) == []
    assert told.quarantine.suspended == set()


def test_while_others_will_tell_it_is_looked_at_again_when_the_first_of_them_has_run_long_enough() -> None:
    told = Told()
    assert told.quarantine.next_wake(running(a=1.0)) == NEVER
    for _ in range(2):
        told.end("b")
    told.quarantine.review(running(a=3.0, c=7.0))
    assert told.quarantine.next_wake(running(a=3.0, c=7.0)) == 3
    assert told.quarantine.next_wake(running(a=13.0)) == NEVER
    told.end("a", SUCCESS)
    assert [each.gpu for each in told.quarantine.review(nothing)] == ["b"]
    assert told.quarantine.suspended == set()


def test_success_before_the_failures_tells_nothing_of_them() -> None:
    told = Told()
    told.end("a", SUCCESS)
    for _ in range(2):
        told.end("b")
    assert told.quarantine.review(nothing) == []
    told.end("a", SUCCESS)
    assert told.quarantine.review(nothing)


@pytest.mark.parametrize(("in_a_row", "is_aside"), [(19, False), (20, True)])
def test_where_jobs_fail_elsewhere_too_chance_must_be_out_of_the_question(in_a_row: int, is_aside: bool) -> None:
    """Half of them fail elsewhere: 20 in a row are less likely than one in a million."""
    told = Told()
    for _ in range(100):
        told.end("a")
        told.end("a", SUCCESS)
    for _ in range(in_a_row):
        told.end("b")
    told.end("a", SUCCESS)
    assert bool(told.quarantine.review(nothing)) == is_aside


@pytest.mark.parametrize(("in_a_row", "is_aside"), [(15, False), (16, True)])
def test_what_fails_elsewhere_meanwhile_counts_where_that_is_more_than_before(in_a_row: int, is_aside: bool) -> None:
    """Of ten, four: 0.4 to the power of 16 is below one in a million."""
    told = Told()
    for _ in range(100):
        told.end("a", SUCCESS)
    told.end("b")
    for outcome in [FAILURE] * 3 + [SUCCESS] * 5:
        told.end("a", outcome)
    for _ in range(in_a_row - 1):
        told.end("b")
    assert bool(told.quarantine.review(nothing)) == is_aside


@pytest.mark.parametrize(("longer", "is_aside"), [(1, False), (2, True)])
def test_what_has_been_running_elsewhere_for_long_counts_as_good_against_chance(longer: int, is_aside: bool) -> None:
    told = Told(limit=2)
    for outcome in (FAILURE, *[SUCCESS] * 98):
        told.end("a", outcome)
    for _ in range(10):
        told.end("b")
    now = running(**{f"c{number}": QUICK for number in range(longer)})
    assert bool(told.quarantine.review(now)) == is_aside


def test_only_the_last_word_on_a_job_is_tried_elsewhere() -> None:
    told = Told()
    told.end("b", is_final=False)
    last = told.end("b")
    told.end("a", SUCCESS)
    [aside] = told.quarantine.review(nothing)
    assert [each.attempt.job.number for each in aside.failures] == [last]


def test_one_success_elsewhere_convicts_and_only_a_last_failure_of_all_clears() -> None:
    for outcome, verdict in ((SUCCESS, ([], ["b"])), (FAILURE, (["b"], []))):
        told = Told()
        first, second = told.end("b"), told.end("b")
        told.end("a", SUCCESS)
        assert told.quarantine.review(nothing)
        assert told.again(first, "a", FAILURE, is_final=False) == ([], [])
        assert told.again(first, "a", FAILURE) == ([], [])
        assert told.again(77, "a", SUCCESS) == ([], []), "it is of no trial"
        assert told.again(second, "a", outcome) == verdict
        assert told.again(second, "a", SUCCESS) == ([], []), "the trial is over"


def on_trial() -> tuple[Told, int, int]:
    told = Told()
    first, second = told.end("b"), told.end("b")
    told.end("a", SUCCESS)
    [aside] = told.quarantine.review(nothing)
    assert not aside.was_aside
    return told, first, second


def late(told: Told, number: int = 0) -> list[int]:
    """The jobs to try elsewhere, once this one has failed where it still ran; 0: another one."""
    told.number += 1
    assert told.again(number or told.number, "b", FAILURE) == ([], [])
    found = told.quarantine.review(nothing)
    assert all(each.gpu == "b" and each.was_aside for each in found)
    return [failure.attempt.job.number for each in found for failure in each.failures]


def test_what_still_ran_on_the_gpu_and_fails_is_tried_elsewhere_too_and_takes_part_in_the_trial() -> None:
    told, first, second = on_trial()
    [third] = late(told)
    assert told.again(first, "a", FAILURE) == ([], [])
    assert told.again(second, "a", FAILURE) == ([], [])
    assert told.again(third, "a", FAILURE) == (["b"], [])
    assert late(told) == [], "the GPU is back in use"


def test_what_still_ran_on_a_convicted_gpu_is_tried_elsewhere_and_clears_it_no_more() -> None:
    told, first, _ = on_trial()
    assert told.again(first, "a", SUCCESS) == ([], ["b"])
    [third] = late(told)
    assert told.again(third, "a", FAILURE) == ([], [])
    assert late(told, third) == [], "once only"
    assert told.quarantine.end_trials(lambda _number: False) == []


def test_a_gpu_whose_trial_could_not_end_is_judged_anew() -> None:
    told, _, _ = on_trial()
    assert told.quarantine.end_trials(lambda _number: False) == ["b"]
    assert late(told) == []


def test_a_trial_whose_jobs_will_not_run_clears_the_gpu() -> None:
    told = Told()
    first, second = told.end("b"), told.end("b")
    told.end("a", SUCCESS)
    assert told.quarantine.review(nothing)
    assert told.quarantine.end_trials({first, second}.__contains__) == []
    assert told.again(first, "a", FAILURE) == ([], [])
    assert told.quarantine.end_trials({second}.__contains__) == []
    assert told.quarantine.end_trials(lambda _number: False) == ["b"]
    assert told.again(second, "a", SUCCESS) == ([], []), "the trial is over"


# ---- The quarantine by itself


class Ends:
    """A quarantine, told how jobs end one after another."""

    def __init__(self, limit: int = 3) -> None:
        self.quarantine = Quarantine(limit)
        self.number = 0

    def end(self, gpu: str, outcome: Outcome = SUCCESS, *, length: float = 1, number: int = 0, final: bool = True):
        self.number += 1
        attempt = Attempt(Job(number or self.number, b"", Place(1), len(gpu)), 1, tuple(gpu), (0,))
        return self.quarantine.record(Failure(attempt, outcome), length, is_final=final)

    def review(self, **running: float) -> list[str]:
        attempts = [
            (Attempt(Job(1000 + at, b"", Place(1)), 1, (gpu[1:],), (0,)), runtime)
            for at, (gpu, runtime) in enumerate(running.items())
        ]
        return [aside.gpu for aside in self.quarantine.review(lambda: attempts)]


@pytest.mark.parametrize(
    ("ends", "running", "expected", "suspended"),
    [
        ("1- 1- 1- 0+", {}, ["1"], []),
        ("0+ 1- 1- 1-", {}, [], []),
        ("1- 1- 0+", {}, [], []),
        ("1- 1- 1+ 1- 0+", {}, [], []),
        ("1- 1- 1-", {}, [], []),
        ("1- 1- 1-", {"g0": 1}, [], ["1"]),
        ("1- 1- 1-", {"g0": 11}, ["1"], []),
        ("1- 1- 1-", {"g1": 11}, [], []),
        ("1- 1- 1~ 0+", {}, [], []),
        ("1- 1- 1s 0+", {}, [], []),
        ("1- 1- 1x 1- 0+", {}, ["1"], []),
        ("0- 1- 0- 1- 0- 1-", {}, [], []),
        ("12- 12- 12- 0+", {}, [], []),
        ("1k 1k 1k 0+", {}, ["1"], []),
    ],
)
def test_a_gpu_is_at_fault_when_only_there_one_quick_failure_follows_another(
    ends: str, running: dict[str, float], expected: list[str], suspended: list[str]
) -> None:
    """`-` failed at once, `+` succeeded, `~` timed out, `s` failed late, `x` could not start, `k` was killed."""
    outcomes = {
        "+": (SUCCESS, 1), "-": (FAILURE, 1), "~": (Outcome("timed out"), 1),
        "s": (FAILURE, 11), "x": (Outcome("not started"), 0), "k": (Outcome("killed", 9), 1),
    }  # fmt: skip
    told = Ends()
    for end in ends.split():
        outcome, length = outcomes[end[-1]]
        told.end(end[:-1], outcome, length=length)
    assert told.review(**running) == expected
    assert sorted(told.quarantine.suspended) == suspended


def test_what_failed_elsewhere_too_clears_the_gpu_and_one_success_there_convicts_it() -> None:
    for last, cleared in ((FAILURE, ["1"]), (SUCCESS, [])):
        told = Ends()
        for number in (1, 2, 3):
            told.end("1", FAILURE, number=number)
        told.end("0", number=9)
        assert told.review() == ["1"]
        ends = [told.end("0", FAILURE, number=1), told.end("0", FAILURE, number=2), told.end("0", last, number=3)]
        assert [list(verdict.cleared) for verdict in ends] == [[], [], cleared]
        assert [list(verdict.convicted) for verdict in ends] == [[], [], [] if cleared else ["1"]]


def test_a_job_is_tried_elsewhere_once_only() -> None:
    told, tried = Ends(), []
    for gpu in "12":
        for number in (1, 2, 3):
            told.end(gpu, FAILURE, number=number)
        for _ in range(1000):
            told.end("0", number=9)
        tried += [(one.gpu, len(one.failures)) for one in told.quarantine.review(list)]
    assert tried == [("1", 3), ("2", 0)]


def sets_one_aside_by_chance(share: float, gpus: int, seed: int) -> bool:
    random, told = Random(seed), Ends()
    for gpu in range(gpus):  # a failure and a success everywhere: it is known that jobs may fail
        told.end(str(gpu), FAILURE)
        told.end(str(gpu))
    for _ in range(200):
        told.end(str(random.randrange(gpus)), FAILURE if random.random() < share else SUCCESS)
        if told.review():
            return True
    return False


@pytest.mark.unmeasured
def test_chance_alone_hardly_ever_sets_a_gpu_aside_when_failures_are_seen_everywhere() -> None:
    """How often jobs fail is known only from those that have ended, so it cannot be never."""
    runs = [(share / 10, gpus, seed) for share in range(1, 10) for gpus in (2, 4, 8) for seed in range(40)]
    assert sum(sets_one_aside_by_chance(*each) for each in runs) <= len(runs) / 200
