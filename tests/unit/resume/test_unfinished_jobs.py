"""What is left of a run, and which lines of an input it had: pure, from records and lines."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.events import JobsRead, LineRefused, ReadMark
from simple_gpu_scheduler.jobfile.parse import LineParser, Refusal
from simple_gpu_scheduler.journal import VERSION
from simple_gpu_scheduler.journal.read import read_records
from simple_gpu_scheduler.journal.records import encode, record
from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.resume.unfinished_jobs import Matcher, what_is_left
from simple_gpu_scheduler.scheduling import NextAttempt

BEGAN = record("run began", 1.0, run="r", version=VERSION)
LINES = [
    b"a",
    b"b",
    b" b",
    b"b #: gpus=2",
    b"b   #: gpus=2",
    b"b #: gpus=0 retries=1",
    b"c #: name=x",
    b"d #: name=y",
    b"e #: after=x",
    b"\xff\xfe",
    b"f #: nonsense=1",
    b"g #: gpus=9",
    b"# a remark",
    b"",
]
lines_of_a_file = st.lists(st.sampled_from(LINES), max_size=12)


def parser() -> LineParser:
    return LineParser(lambda: (1.0,) * 4)


def parsed(parser: Any, lines: list[bytes], name: str = "") -> list[Job | Refusal]:
    parser.begin(name)
    found = (parser.parse(number, line, len(line)) for number, line in enumerate(lines, 1))
    return [each for each in found if each is not None]


def written(found: list[Job | Refusal], *more: str) -> RunState:
    """What a journal tells in which these were read, and these records came behind."""
    text = BEGAN
    for each in found:
        read = isinstance(each, Job)
        text += encode(JobsRead([each]) if read else LineRefused(each.place, each.problem, each.number), 2.0)
    state = RunState()
    state.feed(read_records((text + "".join(more)).encode("utf-8", "surrogateescape")).records)
    assert state.unreadable == 0
    return state


def lacks_name(found: Job | Refusal) -> bool:
    return isinstance(found, Refusal) and "no earlier job has that name" in found.problem


def contents(found: list[Job | Refusal]) -> Counter:
    """How often each is there, whatever its number and place."""
    return Counter(each._replace(number=0, place=None) if isinstance(each, Job) else each.problem for each in found)


@given(lines_of_a_file.flatmap(lambda lines: st.tuples(st.just(lines), st.permutations(lines))), st.data())
def test_only_what_is_there_more_often_than_in_the_run_is_passed_on(both: Any, data: Any) -> None:
    """For lines without `after`, whose content is that of other lines."""
    had, again = ([line for line in lines if b"after" not in line] for lines in both)
    cut = data.draw(st.integers(0, len(had)))
    extra = [line for line in data.draw(lines_of_a_file) if b"after" not in line]
    at = data.draw(st.integers(0, len(again)))
    now = again[at:] + extra + again[:at]
    run = parsed(parser(), had[:cut])
    passed = parsed(Matcher(parser(), written(run)), now)
    fresh = parsed(parser(), now)
    assert contents(passed) == contents(fresh) - contents(run)
    first = max((each.number for each in run), default=0) + 1
    assert [each.number for each in passed] == list(range(first, first + len(passed)))


@given(lines_of_a_file, lines_of_a_file)
def test_what_a_job_comes_after_is_the_newest_before_it_of_that_name(had: list[bytes], more: list[bytes]) -> None:
    """The same lines as those of one input: numbers apart, the run and the input together say the same."""
    run = parsed(parser(), had)
    assume(not any(lacks_name(each) for each in run))  # which the run knows when its input is read again
    matcher = Matcher(parser(), written(run))
    assert parsed(matcher, had) == []
    passed = parsed_on(matcher, more, len(had))
    whole = parsed(parser(), had + more)
    assert run + passed == [each._replace(place=by.place) for each, by in zip(whole, run + passed, strict=True)]


def parsed_on(parser: Any, lines: list[bytes], behind: int) -> list[Job | Refusal]:
    found = (parser.parse(number, line, len(line)) for number, line in enumerate(lines, behind + 1))
    return [each for each in found if each is not None]


@given(st.lists(st.sampled_from(LINES[:10]), max_size=10), st.integers(0, 10))
def test_a_run_cut_anywhere_and_its_whole_input_give_the_whole_run(lines: list[bytes], cut: int) -> None:
    whole = parsed(parser(), lines)
    assume(not any(lacks_name(each) for each in whole))  # as above
    state = written(whole[:cut])
    assert whole[:cut] + parsed(Matcher(parser(), state), lines) == whole


def test_after_goes_by_the_runs_numbers_when_lines_have_moved() -> None:
    run = parsed(parser(), [b"a", b"b #: name=x", b"c #: after=x"])
    matcher = Matcher(parser(), written(run))
    lines = [b"new #: name=n", b"b #: name=x", b"c #: after=x", b"d #: after=x", b"e #: after=n,x", b"a"]
    assert [(job.command, job.number, job.after) for job in parsed(matcher, lines)] == [
        (b"new", 4, ()),
        (b"d", 5, (2,)),
        (b"e", 6, (4, 2)),
    ]


def test_a_name_of_the_run_may_be_used_by_an_input_without_it() -> None:
    run = parsed(parser(), [b"a", b"b #: name=x"])
    [job] = parsed(Matcher(parser(), written(run)), [b"c #: after=x"])
    assert (job.number, job.after) == (3, (2,))


def test_a_job_behind_another_one_of_its_name_is_another_job() -> None:
    run = parsed(parser(), [b"a #: name=x", b"b #: after=x"])
    [first, second] = parsed(Matcher(parser(), written(run)), [b"a2 #: name=x", b"b #: after=x"])
    assert (first.number, second.number, second.after) == (3, 4, (3,))


def test_defaults_count_as_options_of_each_job() -> None:
    run = parsed(parser(), [b"#: gpus=2", b"a", b"b"])
    passed = parsed(Matcher(parser(), written(run)), [b"b #: gpus=2", b"a", b"#: gpus=2", b"a"])
    assert [(job.command, job.gpus) for job in passed] == [(b"a", 1)]


def test_two_inputs_share_what_the_run_had() -> None:
    matcher = Matcher(parser(), written(parsed(parser(), [b"a", b"a"], "one")))
    assert parsed(matcher, [b"a"], "two") == []
    assert [job.number for job in parsed(matcher, [b"a", b"a"], "three")] == [3]


def test_behind_a_place_that_is_remembered_only_what_was_read_since_is_compared() -> None:
    """A queue gets the same command twice: the second is another job, unless it was read and the place not written."""
    mark = ReadMark("q", offset=2, line=2)
    run = parsed(parser(), [b"a"])
    state = written(run, encode(JobsRead([], mark), 3.0), encode(JobsRead([run[0]._replace(number=2)]), 4.0))
    matcher = Matcher(parser(), state)
    matcher.begin("", mark)
    assert matcher.parse(2, b"a", 1) is None
    assert matcher.parse(3, b"a", 1).number == 3


# What is left.


def started(job: int, attempt: int = 1) -> str:
    return record("job started", 5.0, job=job, attempt=attempt, gpus=["0"], slots=[0])


def ended(job: int, outcome: str, attempt: int = 1, **values: Any) -> str:
    fields = {"code": 1, "started": 5.0, "runtime": 1.0, "final": True} | values
    return record("job ended", 6.0, job=job, attempt=attempt, outcome=outcome, **fields)


def state_of(*records: str, jobs: int = 1) -> RunState:
    return written(parsed(parser(), [b"job %d" % number for number in range(jobs)]), *records)


@pytest.mark.parametrize(
    ("records", "begin"),
    [
        ((), NextAttempt(1, 0)),
        ((started(1),), NextAttempt(2, 1)),
        ((started(1), ended(1, "failed", final=False)), NextAttempt(2, 0)),
        ((started(1), ended(1, "failed", final=False), started(1, 2)), NextAttempt(3, 1)),
        ((started(1), ended(1, "killed", interrupted=True)), NextAttempt(2, 1)),
        ((started(1), started(1, 2)), NextAttempt(3, 2)),
        ((started(1), ended(1, "failed"), record("job requeued", 7.0, job=1, why="")), NextAttempt(2, 0)),
    ],
)
def test_an_unfinished_job_resumes_with_its_next_attempt(records: Any, begin: NextAttempt) -> None:
    left = what_is_left(state_of(*records), {}, failed_too=False)
    assert [(job.number, each) for job, each in left.waiting] == [(1, begin)]
    assert not left.survivors
    assert not left.ended


@pytest.mark.parametrize("outcome", ["failed", "killed", "timed out", "stalled", "not started"])
@pytest.mark.parametrize("failed_too", [False, True])
def test_what_did_not_succeed_is_left_only_when_it_is_asked_for(outcome: str, failed_too: bool) -> None:
    left = what_is_left(state_of(started(1), ended(1, outcome)), {}, failed_too=failed_too)
    if failed_too:
        assert [each for _, each in left.waiting] == [NextAttempt(2, 1, outcome != "not started")]  # all retries again
    else:
        assert [each[1] for each in left.ended] == [outcome]


@pytest.mark.parametrize("failed_too", [False, True])
def test_what_succeeded_or_was_cancelled_is_never_left(failed_too: bool) -> None:
    records = started(1), ended(1, "succeeded"), record("job dropped", 7.0, job=2, reason="", cancelled=True)
    left = what_is_left(state_of(*records, jobs=2), {}, failed_too=failed_too)
    assert [each[1] for each in left.ended] == ["succeeded", "cancelled"]
    assert not left.waiting


@pytest.mark.parametrize("failed_too", [False, True])
def test_a_job_that_was_cancelled_before_it_was_tried_again_is_not_left(failed_too: bool) -> None:
    again = record("job requeued", 7.0, job=1, why="")
    cancelled = record("job dropped", 8.0, job=1, reason="", cancelled=True)
    left = what_is_left(state_of(started(1), ended(1, "failed"), again, cancelled), {}, failed_too=failed_too)
    assert [each[1] for each in left.ended] == ["cancelled"]
    assert not left.waiting


def test_a_dropped_job_is_left_when_it_is_asked_for() -> None:
    state = state_of(record("job dropped", 7.0, job=1, reason="job 2 did not succeed"))
    assert [each[1] for each in what_is_left(state, {}, failed_too=False).ended] == ["not started"]
    assert [begin for _, begin in what_is_left(state, {}, failed_too=True).waiting] == [NextAttempt(1, 0)]


def test_an_attempt_that_still_runs_is_no_waiting_job() -> None:
    state = state_of(started(1), started(2), started(2, 2), started(3), ended(3, "succeeded"), jobs=3)
    left = what_is_left(state, {(1, 1): 70, (2, 1): 71, (3, 1): 72}, failed_too=True)
    assert [(each.attempt.key, each.pid, each.began_at) for each in left.survivors] == [((1, 1), 70, 5.0)]
    assert [(job.number, begin) for job, begin in left.waiting] == [(2, NextAttempt(3, 2))]
    assert [each[0].number for each in left.ended] == [3]


@pytest.mark.parametrize(("failed_too", "excused"), [(False, 1), (True, 3)])
def test_one_that_ended_without_a_scheduler_is_a_survivor_with_its_status(failed_too: bool, excused: int) -> None:
    """Of its attempts, only the interrupted one is excused; all are if the user retries what failed."""
    interrupted = started(1), ended(1, "killed", interrupted=True)
    failed = started(1, 2), ended(1, "failed", 2, final=False)
    exited = started(1, 3), record("job exited", 8.0, job=1, attempt=3, status=256)
    left = what_is_left(state_of(*interrupted, *failed, *exited), {}, failed_too=failed_too)
    found = [(each.attempt.key, each.pid, each.status, each.excused, each.ended_at) for each in left.survivors]
    assert found == [((1, 3), 0, 256, excused, 8.0)]
    assert not left.waiting
    assert not left.ended


def test_the_lengths_are_those_of_the_jobs_that_succeeded_and_whose_end_is_published() -> None:
    exited = started(3), record("job exited", 9.0, job=3, attempt=1, status=0)
    failed = started(2), ended(2, "failed", runtime=7.0)
    state = state_of(started(1), ended(1, "succeeded", runtime=4.0), *failed, *exited, jobs=4)
    left = what_is_left(state, {}, failed_too=False)
    assert left.as_event([]).lengths == (4.0,)


def test_a_job_that_has_ended_gets_its_next_attempt_and_all_retries_when_the_user_retries_it() -> None:
    state = state_of(started(1), ended(1, "failed", final=False), started(1, 2), ended(1, "failed", 2))
    [(job, fate, begin)] = what_is_left(state, {}, failed_too=False).ended
    assert (job.number, fate, begin) == (1, "failed", NextAttempt(3, 2, has_failed=True))


def test_the_sentence_tells_what_a_person_should_know() -> None:
    state = state_of(started(1), ended(1, "succeeded"), started(2), ended(2, "failed"), started(3), jobs=4)
    assert what_is_left(state, {(3, 1): 0}, failed_too=False).sentence("r") == (
        "resuming run r: 1 succeeded, 1 did not (to retry: --resume-failed), 1 still running (job 3), 1 waiting"
    )
    state = state_of(started(1), started(2), jobs=2)
    assert what_is_left(state, {(1, 1): 0, (2, 1): 0}, failed_too=False).sentence("r") == (
        "resuming run r: 0 succeeded, 2 still running (jobs 1, 2), 0 waiting"
    )


def test_the_sentence_names_no_option_that_was_given_and_counts_refused_lines_apart() -> None:
    state = written(
        [Refusal(1, Place(1), "unknown option", is_bad_option=True), Job(2, b"true", Place(2))],
        started(2),
        ended(2, "failed"),
    )
    refused = "1 line was refused (once corrected: --resume FILE)"
    assert what_is_left(state, {}, failed_too=False).sentence("r") == (
        f"resuming run r: 0 succeeded, 1 did not (to retry: --resume-failed), {refused}, 0 waiting"
    )
    assert (
        what_is_left(state, {}, failed_too=True).sentence("r") == f"resuming run r: 0 succeeded, {refused}, 1 waiting"
    )
    exited = state_of(started(1), record("job exited", 9.0, job=1, attempt=1, status=256), jobs=1)
    assert what_is_left(exited, {}, failed_too=True).sentence("r") == (
        "resuming run r: 0 succeeded, 1 did not, 0 waiting"
    )
