"""What became of each job: the ledger, and that a journal which is read back tells the same."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Fate, Job, Kind, Outcome, Place
from simple_gpu_scheduler.base.values import get_args
from simple_gpu_scheduler.display.lines import EventWords
from simple_gpu_scheduler.events import (
    AllRead,
    Event,
    GpuSetAside,
    JobDropped,
    JobEnded,
    JobRequeued,
    JobsRead,
    JobStarted,
    LeftBehind,
    LineRefused,
    Noticed,
    Paused,
    ReadMark,
    RunBegan,
    RunEnded,
    RunResumed,
    StopAsked,
    Waited,
    WaitsSeen,
)
from simple_gpu_scheduler.events.eta import Eta
from simple_gpu_scheduler.events.ledger import Counts, End, Ledger, Started, State, fate_of, state_after
from simple_gpu_scheduler.events.publisher import Publisher, SinkTroubleError
from simple_gpu_scheduler.journal.run_state import RunState, read_state
from simple_gpu_scheduler.journal.sink import Journal
from simple_gpu_scheduler.notify.message import told
from simple_gpu_scheduler.resume.unfinished_jobs import Resumption, what_is_left
from simple_gpu_scheduler.scheduling import NextAttempt

FAILED, KILLED, LATE = Outcome("failed", 1), Outcome("killed", 15), Outcome("timed out")
STALLED = Outcome("stalled", reason="its GPU was at 0 % for 15 min")
NO_START = Outcome("not started", reason="no such file")
STOP = StopAsked("Ctrl-C", True, False, 1)


def job(number: int, **options: object) -> Job:
    return Job(number, b"true", Place(number), **options)  # type: ignore[arg-type]


def attempt(number: int, tries: int = 1) -> Attempt:
    return Attempt(job(number), tries, ("0",), (0,))


def started(number: int, tries: int = 1) -> JobStarted:
    return JobStarted(attempt(number, tries), f"{number}.log")


def ended(
    number: int, outcome: Outcome = FAILED, tries: int = 1, *, final: bool = True, stopped: bool = False, **more: bool
) -> JobEnded:
    return JobEnded(attempt(number, tries), outcome, 0.0, 2.0, final, stopped, **more)


def read(*numbers: int) -> JobsRead:
    return JobsRead([job(number) for number in numbers])


def ledger(*events: Event) -> Ledger:
    found = Ledger()
    for event in events:
        found.take(event)
    return found


def summary(*events: Event) -> RunEnded:
    return ledger(*events).summary(7.5, 0)


class TestAJob:
    def test_waits_from_when_it_is_read_until_it_starts_and_runs_until_it_ends(self) -> None:
        subject = ledger(read(1, 2))
        assert (subject.counts(), subject.state_of(1)) == (Counts(waiting=2), "waiting")
        assert [subject.state_of(number) for number in (-1, 0, 3)] == [None, None, None]
        subject.take(started(1), 5.0)
        assert subject.running == {(1, 1): Started(attempt(1), 5.0, "1.log")}
        assert (subject.counts(), subject.state_of(1)) == (Counts(waiting=1, running=1), "running")
        subject.take(ended(1, SUCCESS), 9.0)
        assert (subject.counts(), subject.state_of(1)) == (Counts(waiting=1, succeeded=1), "succeeded")
        assert (subject.running, subject.ended, list(subject.waiting)) == ({}, {}, [2])

    @pytest.mark.parametrize(
        ("outcome", "counts", "state"),
        [
            (FAILED, Counts(failed=1), "failed"),
            (KILLED, Counts(failed=1), "failed"),
            (LATE, Counts(timed_out=1), "failed"),
            (STALLED, Counts(stalled=1), "failed"),
            (NO_START, Counts(not_started=1), "not started"),
        ],
        ids=lambda value: getattr(value, "kind", ""),
    )
    def test_that_did_not_succeed_is_kept_with_its_last_attempt(
        self, outcome: Outcome, counts: Counts, state: State
    ) -> None:
        subject = ledger(read(1), started(1), ended(1, outcome))
        assert (subject.counts(), subject.state_of(1)) == (counts, state)
        assert subject.ended == {1: End(attempt(1), job(1), outcome.kind)}
        found = summary(read(1), started(1), ended(1, outcome))
        assert (*found[:4], found.stalled) == (*counts[2:6], counts.stalled)

    def test_that_is_tried_again_waits_and_its_failure_is_known_until_it_starts(self) -> None:
        failure = ended(1, final=False)
        subject = ledger(read(1), started(1), failure)
        assert (subject.counts(), subject.to_retry, subject.ended) == (Counts(waiting=1), {1: failure}, {})
        subject.take(started(1, 2))
        assert (subject.counts(), subject.to_retry) == (Counts(running=1), {})

    def test_is_cancelled_whatever_it_did_before(self) -> None:
        waiting = ledger(read(1), JobDropped(job(1), "it was cancelled", is_cancelled=True))
        running = ledger(read(1), started(1), ended(1, KILLED, is_cancelled=True))
        between = ledger(read(1), started(1), ended(1, final=False), ended(1, is_cancelled=True))
        for subject, its_attempt in ((waiting, None), (running, attempt(1)), (between, attempt(1))):
            assert (subject.counts(), subject.state_of(1)) == (Counts(cancelled=1), "cancelled")
            assert subject.ended == {1: End(its_attempt, job(1), "cancelled")}
            assert (subject.failed, subject.exit_code(0), subject.to_retry, subject.waiting) == (0, 1, {}, {})

    def test_that_succeeds_though_it_was_cancelled_has_succeeded(self) -> None:
        subject = ledger(read(1), started(1), ended(1, SUCCESS, is_cancelled=True))
        assert (subject.counts(), subject.exit_code(0)) == (Counts(succeeded=1), 0)

    def test_that_is_dropped_was_not_started(self) -> None:
        subject = ledger(read(1), JobDropped(job(1), "job 9 did not succeed"))
        assert (subject.counts(), subject.state_of(1)) == (Counts(not_started=1), "not started")
        assert subject.ended == {1: End(None, job(1), "not started")}

    def test_that_a_stop_has_ended_waits_and_is_interrupted(self) -> None:
        subject = ledger(read(1, 2), started(1), STOP, ended(1, KILLED, stopped=True))
        assert (subject.counts(), subject.state_of(1)) == (Counts(waiting=1, interrupted=1), "interrupted")
        assert (subject.interrupted, subject.failed, subject.ended) == ({1}, 0, {})
        assert subject.summary(7.5, 15) == RunEnded(
            0, 0, 0, 1, 7.5, all_read=False, code=143, left=2, cancelled=0, interrupted=1
        )

    def test_that_was_to_be_tried_again_when_the_run_was_stopped_is_interrupted(self) -> None:
        subject = ledger(read(1), started(1), ended(1, final=False), STOP, ended(1, stopped=True))
        assert (subject.counts(), subject.interrupted, subject.to_retry) == (Counts(interrupted=1), {1}, {})

    def test_is_interrupted_no_more_when_it_starts_or_is_dropped(self) -> None:
        events = read(1), started(1), ended(1, stopped=True)
        assert ledger(*events, started(1, 2)).interrupted == set()
        assert ledger(*events, JobDropped(job(1), "")).interrupted == set()

    @pytest.mark.parametrize("end", [ended(1), JobDropped(job(1), ""), JobDropped(job(1), "", is_cancelled=True)])
    def test_that_is_requeued_waits_as_if_it_had_not_ended(self, end: Event) -> None:
        subject = ledger(read(1), started(1), end, JobRequeued(job(1), "retry"))
        subject.take(started(1, 2))
        subject.take(ended(1, SUCCESS, 2))
        assert (subject.counts(), subject.ended, subject.exit_code(0)) == (Counts(succeeded=1), {}, 0)

    def test_with_an_unknown_exit_code_waits(self) -> None:
        subject = ledger(RunResumed(running=[(attempt(1), 3.0, ""), (attempt(2), 3.0, "")]))
        subject.take(JobRequeued(job(1), "its exit code is unknown"))
        assert (subject.counts(), list(subject.running)) == (Counts(waiting=1, running=1), [(2, 1)])

    def test_says_how_it_ended_unless_the_user_wanted_it(self) -> None:
        for kind in get_args(Kind):
            assert fate_of(kind, is_cancelled=False) == kind
            assert fate_of(kind, is_cancelled=True) == ("succeeded" if kind == "succeeded" else "cancelled")
            assert state_after(kind, is_final=False) == "waiting"
            assert state_after(kind, is_interrupted=True) == "interrupted"
        assert set(map(state_after, get_args(Kind))) == {"succeeded", "failed", "not started"}


class TestARun:
    def test_counts_a_refused_line_as_not_started_and_as_bad_input(self) -> None:
        subject = ledger(read(1), LineRefused(Place(2), "bad", 2), started(1), ended(1, SUCCESS))
        assert (subject.counts(), subject.refused) == (Counts(succeeded=1, not_started=1), {2})
        assert (subject.exit_code(0), subject.exit_code(2), subject.last_read) == (2, 130, 2)
        assert (subject.state_of(2), subject.state_of(1)) == (None, "succeeded")

    def test_has_read_all_until_more_comes(self) -> None:
        subject = ledger(read(1))
        assert not subject.all_read
        for event, all_read in (
            (AllRead(), True),
            (JobsRead([], ReadMark("input-0")), True),
            (read(2), False),
            (AllRead(), True),
            (LineRefused(Place(3), "bad", 3), False),
        ):
            subject.take(event)
            assert subject.all_read is all_read
            assert subject.summary(0, 0).all_read is all_read

    def test_knows_the_last_that_was_read_whatever_comes_first(self) -> None:
        assert ledger(read(1, 2), LineRefused(Place(3), "", 3), read(5), LineRefused(Place(4), "", 4)).last_read == 5
        assert ledger(LineRefused(Place(4), "", 4), read(1)).last_read == 4
        assert ledger(RunResumed([(job(2), "failed")], [1], [(attempt(7), 1, "")], [job(3)]), read(4)).last_read == 7
        assert ledger(RunResumed(refused=[9])).last_read == 9

    def test_is_paused_stopping_and_over_after_those_events(self) -> None:
        subject = ledger(Paused(True))
        assert (subject.is_paused, subject.is_stopping, subject.is_over) == (True, False, False)
        subject.take(Paused(False))
        subject.take(STOP)
        assert (subject.is_paused, subject.is_stopping, subject.is_over) == (False, True, False)
        subject.take(RunEnded(0, 0, 0, 0, 0.0, all_read=True))
        assert subject.is_over

    def test_knows_why_jobs_wait(self) -> None:
        waits = [Wait("1", "leased by bob", "bob")]
        assert ledger(Waited(waits)).waits == waits
        assert ledger(Waited(waits), Waited([])).waits == []
        longer = [Wait("1", "leased by bob for 2 h", "bob")]
        assert ledger(Waited(waits), WaitsSeen(longer)).waits == longer

    @pytest.mark.parametrize(
        ("event", "code"),
        [
            (Noticed("careful"), 0),
            (Noticed("the disk is full", is_failure=True), 1),
            (LeftBehind(attempt(1), 2, ""), 0),
            (LeftBehind(attempt(1), 0, "77"), 1),
            (GpuSetAside("0", "lost"), 0),
        ],
    )
    def test_tells_of_other_trouble_by_its_exit_code(self, event: Event, code: int) -> None:
        assert ledger(event, Noticed("fine")).exit_code(0) == code

    def test_has_succeeded_only_if_every_job_has(self) -> None:
        assert ledger(read(1), started(1), ended(1, SUCCESS)).exit_code(0) == 0
        assert ledger(read(1)).exit_code(0) == 1
        assert ledger(read(1), started(1), ended(1)).exit_code(0) == 1
        assert ledger(read(1), started(1), ended(1, stopped=True)).exit_code(0) == 1
        assert ledger().exit_code(15) == 143

    def test_tells_at_its_end_what_still_waits(self) -> None:
        events = read(1, 2, 3, 4, 5), JobDropped(job(1), "", is_cancelled=True), JobDropped(job(2), ""), started(3)
        found = summary(*events, ended(3, stopped=True), AllRead())
        assert found == RunEnded(0, 0, 0, 3, 7.5, all_read=True, code=1, left=3, cancelled=1, interrupted=1)

    def test_that_is_resumed_begins_with_what_it_had(self) -> None:
        fates: list[Fate] = ["succeeded", "failed", "timed out", "killed", "not started", "cancelled"]
        assert {*fates, "stalled"} == {*get_args(Fate)}
        earlier = [(job(number), fate) for number, fate in enumerate(fates, 2)]
        subject = Ledger()
        subject.take(RunResumed(earlier, [1], [(attempt(8), 30.0, "8.log")], [job(9), job(10)]), 100.0)
        assert subject.counts() == Counts(2, 1, 1, 2, 1, 2, 1)
        assert subject.counts().total == 10
        assert subject.running == {(8, 1): Started(attempt(8), 70.0, "8.log")}
        assert subject.ended[3] == End(None, job(3), "failed", is_earlier=True)
        assert (list(subject.waiting), list(subject.ended)) == ([9, 10], [3, 4, 5, 6, 7])

    def test_has_states_that_hold_all_counts(self) -> None:
        counts = Counts(1, 2, 4, 8, 16, 32, 64, 128, 256)
        assert (counts.unsuccessful, counts.total) == (8 + 16 + 32 + 64 + 256, 511)
        assert counts.by_state() == {
            "waiting": 1,
            "running": 2,
            "succeeded": 4,
            "failed": 24 + 256,
            "not started": 32,
            "cancelled": 64,
            "interrupted": 128,
        }
        assert set(counts.by_state()) == set(get_args(State))


class TestWhatHaltCounts:
    def test_are_jobs_that_ran_and_failed_by_themselves(self) -> None:
        subject = ledger(read(1, 2, 3, 4, 5, 6), ended(1), ended(2, KILLED), ended(3, LATE), ended(4, NO_START))
        subject.take(ended(5, SUCCESS))
        subject.take(ended(6, final=False))
        subject.take(ended(7, STALLED))
        assert subject.failed == 4

    def test_are_not_those_that_failed_before_this_scheduler_until_they_fail_again(self) -> None:
        fates: list[Fate] = ["failed", "killed", "timed out", "not started", "cancelled", "succeeded", "stalled"]
        subject = ledger(RunResumed([(job(number), fate) for number, fate in enumerate(fates, 1)]))
        assert subject.failed == 0
        for number in (1, 4):
            subject.take(JobRequeued(job(number), "retry"))
            assert subject.failed == 0
        for number in (1, 4):
            subject.take(started(number, 2))
            subject.take(ended(number, FAILED, 2))
        assert subject.failed == 2
        subject.take(JobRequeued(job(1), "retry"))
        assert subject.failed == 1


class TestTheEstimate:
    def test_is_of_what_has_succeeded_and_of_what_waits(self) -> None:
        subject = ledger(read(1, 2, 3), started(1), ended(1, SUCCESS), started(2))
        assert subject.eta([(job(2), 0.5)]) == Eta(None, "still reading the input")
        subject.take(AllRead())
        assert subject.eta([(job(2), 0.5)]) == Eta(1.5 + 2)

    def test_is_none_at_all_where_nothing_runs_and_nothing_more_is_started(self) -> None:
        assert ledger(read(1), Paused(True)).eta([]) == Eta(0.0)

    def test_is_of_what_succeeded_under_an_earlier_scheduler_too(self) -> None:
        earlier = RunResumed([(job(1), "succeeded")], running=[(attempt(2), 1.0, "")], waiting=[job(3)], lengths=[4.0])
        assert ledger(earlier, AllRead()).eta([(job(2), 1.0)]) == Eta(3 + 4)

    def test_says_nothing_of_what_failed(self) -> None:
        subject = ledger(read(1, 2), started(1), ended(1), started(2), AllRead())
        assert subject.eta([(job(2), 0.5)]) == Eta(None, "no job has succeeded yet")

    def test_takes_the_mean_of_all_and_of_what_runs_for_longer(self) -> None:
        subject = ledger(read(1, 2, 3), started(1), ended(1, SUCCESS), started(2))
        subject.take(ended(2, SUCCESS)._replace(length=4.0))
        subject.take(AllRead())
        assert subject.eta([(job(3), 1.0)]) == Eta(2 + 3)  # job 3 still waits
        subject = ledger(read(1), started(1), ended(1, SUCCESS), AllRead())
        assert subject.eta([(job(2), 2.0)]) == Eta(None, "running jobs have exceeded their estimates")
        assert subject.eta([(job(2), 4.0), (job(3), 1.0)]) == Eta(2)  # a mean of 3
        assert subject.eta([(job(2, time=9), 4.0)]) == Eta(5)

    @pytest.mark.parametrize("quiet", [Paused(True), STOP])
    def test_is_of_what_runs_when_nothing_more_is_started(self, quiet: Event) -> None:
        subject = ledger(read(1, 2, 3), started(1), ended(1, SUCCESS), started(2), quiet)
        assert subject.eta([(job(2), 0.5)]) == Eta(1.5)

    def test_knows_the_times_of_those_that_wait_and_of_no_others(self) -> None:
        long, short = job(1, time=100), job(2, time=10)
        subject = ledger(JobsRead([long, short, short._replace(number=3), job(4, time=10)]), AllRead())
        busy = [(job(9, time=5), 0.0)]
        assert subject.eta(busy) == Eta(5 + 130)
        subject.take(JobStarted(Attempt(short, 1, (), ())))
        assert subject.eta(busy) == Eta(5 + 120)
        subject.take(JobDropped(long, ""))
        assert subject.eta(busy) == Eta(5 + 20)
        subject.take(JobRequeued(long, ""))
        assert subject.eta([*busy, *busy, *busy]) == Eta(100)  # the longest


class TestMessages:
    def test_of_a_cancelled_job_is_that_it_was_cancelled_and_not_how_it_was_ended(self) -> None:
        words = EventWords()
        assert (
            words.line(JobDropped(job(1), "it was cancelled", is_cancelled=True))
            == "job 1 (line 1) was cancelled: true"
        )
        assert words.line(ended(1, KILLED, is_cancelled=True)) == "job 1 (line 1) was cancelled after 2.0 s: true"
        assert words.line(ended(1, SUCCESS, is_cancelled=True)) == ""
        assert words.line(ended(1, KILLED)) == "job 1 (line 1) was killed by SIGTERM after 2.0 s: true"

    def test_of_a_job_that_a_stop_ended_is_that_it_was_interrupted(self) -> None:
        words = EventWords()
        assert words.line(ended(1, KILLED, stopped=True)) == "job 1 (line 1) was interrupted after 2.0 s: true"
        failed = ended(1, FAILED, final=False)
        assert "after 2.0 s, retrying: true" in words.line(failed)
        assert "after 2.0 s: true" in words.line(failed._replace(is_left=True))
        left = failed._replace(is_final=True, is_interrupted=True, is_left=True)
        assert words.line(left) == "job 1 (line 1) was interrupted before its next attempt: true"

    def test_at_the_end_has_what_was_cancelled_or_interrupted_only_if_there_is_any(self) -> None:
        end = RunEnded(1, 2, 3, 4, 5.0, all_read=True)
        line = "1 succeeded, 2 failed, 3 timed out, 4 not started"
        assert EventWords().line(end) == f"{line} in 5.0 s"
        assert EventWords().line(end._replace(cancelled=6)) == f"{line}, 6 cancelled in 5.0 s"
        assert (
            EventWords().line(end._replace(cancelled=6, interrupted=7))
            == f"{line}, 6 cancelled, 7 interrupted in 5.0 s"
        )
        none = RunEnded(0, 0, 0, 0, 5.0, all_read=True)
        assert EventWords().line(none) == "no commands were read"
        for one in (none._replace(cancelled=1), none._replace(interrupted=1)):
            assert EventWords().line(one).startswith("0 succeeded, 0 failed, 0 timed out, 0 not started, ")
        unread = EventWords().line(end._replace(all_read=False))
        assert unread == f"{line} in 5.0 s; the rest of the input was not read"
        assert EventWords().line(none._replace(all_read=False)).startswith("0 succeeded, ")

    def test_of_a_run_that_is_resumed_is_what_was_cancelled_apart_from_what_may_be_tried_again(self) -> None:
        begin = NextAttempt(2, 1)
        left = Resumption(ended=((job(1), "failed", begin), (job(2), "cancelled", begin), (job(3), "succeeded", begin)))
        assert left.sentence("r") == (
            "resuming run r: 1 succeeded, 1 did not (to retry: --resume-failed), 1 cancelled, 0 waiting"
        )

    def test_to_a_notifier_is_that_it_was_cancelled(self) -> None:
        dropped = JobDropped(job(1), "it was cancelled", is_cancelled=True)
        found = [told(event).fate for event in (dropped, ended(1, KILLED, is_cancelled=True), ended(1, KILLED))]
        assert found == ["cancelled", "cancelled", "killed"]


class TestAPublisher:
    def test_folds_an_event_before_the_sinks_have_it(self) -> None:
        class Looking:
            def take(self, event: Event, /) -> None:
                seen.append((event, publisher.ledger.counts().waiting))

            def close(self) -> None:
                raise ValueError("not now")

        seen: list[tuple[Event, int]] = []
        publisher = Publisher([Looking()])
        publisher.publish(read(1))
        assert seen == [(read(1), 1)]
        publisher.close()
        assert publisher.ledger.has_trouble

    def test_tries_a_sink_again_that_failed_and_says_so_once(self) -> None:
        class Flaky:
            name = "the list"

            def take(self, event: Event, /) -> None:
                if fails and isinstance(event, JobsRead):
                    raise OSError(28, "No space left on device")
                had.append(event)

            def close(self) -> None:
                pass

        class Lines(Flaky):
            def take(self, event: Event, /) -> None:
                if isinstance(event, Noticed):
                    said.append(event.sentence)

        fails, had, said = False, list[Event](), list[str]()
        publisher = Publisher([Lines(), Flaky()])
        for number in range(1, 9):
            fails = number in (2, 3, 5, 6)
            publisher.publish(read(number))
        publisher.close()
        assert [event for event in had if isinstance(event, JobsRead)] == [read(number) for number in (1, 4, 7, 8)]
        assert said == [
            "the list failed: No space left on device; jobs continue, and it is tried again",
            "the list missed 4 events",
        ]
        assert publisher.ledger.has_trouble

    @pytest.mark.parametrize("is_failure", [True, False])
    def test_knows_whether_the_trouble_of_a_sink_is_a_failure(self, is_failure: bool) -> None:
        class Full:
            def take(self, event: Event, /) -> None:
                if isinstance(event, JobsRead):
                    raise SinkTroubleError("full", is_failure=is_failure)

            def close(self) -> None:
                pass

        publisher = Publisher([Full()])
        publisher.publish(read(1))
        assert publisher.ledger.has_trouble is is_failure

    def test_says_what_a_sink_could_not_do_at_its_end_once_and_to_the_others(self) -> None:
        class Full:
            def take(self, event: Event, /) -> None:
                told.append(event)

            def close(self) -> None:
                raise SinkTroubleError("the disk is full", is_failure=False)

        class Lines(Full):
            def close(self) -> None:
                pass

        told: list[Event] = []
        publisher = Publisher([Lines(), Full()])
        publisher.close()
        publisher.publish(read(1))
        assert told == [Noticed("the disk is full", is_failure=False, is_warning=True)]

    def test_closes_only_the_sink_that_shows_things_when_there_is_a_bug(self) -> None:
        class Closing:
            def __init__(self, name: str) -> None:
                self.name = name

            def take(self, event: Event, /) -> None:
                pass

            def close(self) -> None:
                closed.append(self.name)
                raise ValueError("not now")

        closed: list[str] = []
        Publisher([Closing("screen"), Closing("journal")]).close_first()
        Publisher([]).close_first()
        assert closed == ["screen"]


# A journal that is read back tells the same.


class Lines:
    """What a journal is written to."""

    def __init__(self) -> None:
        self.data = b""

    def append(self, lines: bytes, /) -> None:
        self.data += lines

    def close(self) -> None:
        """Nothing is open."""


OUTCOMES = (SUCCESS, SUCCESS, FAILED, KILLED, LATE, NO_START)


class Run:
    """One that does what a run may do, by chance; it may be killed and resumed. All it publishes goes to both."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lines = Lines()
        self.read = 0
        self._begin(is_resumed=False)

    def _begin(self, *, is_resumed: bool) -> None:
        self.publisher = Publisher([Journal(self.lines)])
        self.ledger = self.publisher.ledger
        self.publisher.publish(RunBegan("r", 1, "0", "deep", "", 1, 1, "/", (), (), is_resumed))

    def state(self) -> RunState:
        return read_state(self.lines.data)

    def step(self) -> None:
        """Something that can happen now."""
        ledger = self.ledger
        acts = [self._read, self._refuse] if not ledger.is_stopping else []
        acts += [self._end] * 3 * bool(ledger.running) + [self._crash]
        if not ledger.is_stopping:
            acts += [self._start, self._start, self._drop] * bool(ledger.waiting) + [self._requeue] * bool(ledger.ended)
            acts += [self._last_word] * bool(ledger.to_retry) + [self._say] + [self._lose] * bool(ledger.running)
        self.chance.choice(acts)()

    def _read(self) -> None:
        numbers = range(self.read + 1, self.read + 1 + self.chance.randint(1, 3))
        self.read = numbers[-1]
        self.publisher.publish(JobsRead([job(number, time=self.chance.choice([None, 5.0])) for number in numbers]))

    def _refuse(self) -> None:
        self.read += 1
        self.publisher.publish(LineRefused(Place(self.read), "bad", self.read))

    def _start(self) -> None:
        number = self.chance.choice(list(self.ledger.waiting))
        tries = self.state().jobs[number].attempts + 1
        self.publisher.publish(JobStarted(Attempt(self.ledger.waiting[number], tries, ("0",), (0,))))

    def _drop(self) -> None:
        one = self.chance.choice(list(self.ledger.waiting.values()))
        if one.number not in self.ledger.to_retry:
            self.publisher.publish(JobDropped(one, "so", self.chance.random() < 0.5))

    def _end(self) -> None:
        its = self.chance.choice(list(self.ledger.running.values())).attempt
        outcome = self.chance.choice(OUTCOMES)
        stopped = self.ledger.is_stopping and outcome != SUCCESS and self.chance.random() < 0.5
        cancelled = not stopped and self.chance.random() < 0.3
        may_retry = not (self.ledger.is_stopping or cancelled) and outcome.kind not in ("succeeded", "not started")
        final = not (may_retry and self.chance.random() < 0.5)
        self.publisher.publish(JobEnded(its, outcome, 1.0, 2.0, final, stopped, cancelled))

    def _last_word(self) -> None:
        """It is cancelled while it waits for its next attempt, or its GPUs are lost."""
        event = self.chance.choice(list(self.ledger.to_retry.values()))
        self.publisher.publish(event._replace(is_final=True, is_cancelled=self.chance.random() < 0.5))

    def _requeue(self) -> None:
        end = self.chance.choice(list(self.ledger.ended.values()))
        self.publisher.publish(JobRequeued(end.job, "retry"))

    def _lose(self) -> None:
        its = self.chance.choice(list(self.ledger.running.values())).attempt
        self.publisher.publish(JobRequeued(its.job, "its exit code is unknown"))

    def _say(self) -> None:
        is_paused = not self.ledger.is_paused
        events = Paused(is_paused), STOP, AllRead(), Noticed("so", is_failure=True), Noticed("so")
        self.publisher.publish(self.chance.choice(events))

    def _crash(self) -> None:
        """The scheduler is killed, or ends because it was stopped; another one resumes the run."""
        if self.ledger.is_stopping and not self.ledger.running:
            for event in tuple(self.ledger.to_retry.values()):
                self.publisher.publish(event._replace(is_final=True, is_interrupted=True))
            self.publisher.publish(self.ledger.summary(1.0, 0))
        state = self.state()
        alive = {key: 7 for key in self.ledger.running if self.chance.random() < 0.5}
        left = what_is_left(state, alive, failed_too=False)
        self._begin(is_resumed=True)
        self.publisher.publish(left.as_event([(each.attempt, 1.0) for each in left.survivors]))
        for number in sorted(key[0] for key in (each.attempt.key for each in left.survivors)):
            assert number in {key[0] for key in alive}


@settings(max_examples=60, deadline=None)
@given(chance=st.randoms(use_true_random=False), steps=st.integers(0, 50))
def test_the_events_of_a_run_come_to_the_same_as_its_journal(chance: random.Random, steps: int) -> None:
    run = Run(chance)
    for _ in range(steps):
        run.step()
        state, ledger = run.state(), run.ledger
        # One that ran when its scheduler died, and is gone, runs on in the journal until it is started again.
        states = {
            number: "waiting" if each.state == "running" and number in ledger.waiting else each.state
            for number, each in state.jobs.items()
        }
        assert {number: ledger.state_of(number) for number in state.jobs} == states
        counts = Counter(states.values())
        counts["not started"] += len(state.refused)
        assert ledger.counts().by_state() == {name: counts[name] for name in get_args(State)}
        assert ledger.refused == set(state.refused)
        assert ledger.last_read == run.read
        assert ledger.is_paused == state.is_paused
        assert {number: end.fate for number, end in ledger.ended.items()} == {
            number: each.outcome.kind if each.state == "failed" and each.outcome else each.state
            for number, each in state.jobs.items()
            if each.state in ("failed", "not started", "cancelled")
        }


def test_a_journal_has_the_numbers_of_the_summary() -> None:
    lines = Lines()
    publisher = Publisher([Journal(lines)])
    for event in (
        RunBegan("r", 1, "0", "deep", "", 1, 1, "/", (), ()),
        read(1, 2, 3),
        started(1),
        JobDropped(job(2), "", is_cancelled=True),
        STOP,
        ended(1, KILLED, stopped=True),
    ):
        publisher.publish(event)
    publisher.publish(publisher.ledger.summary(1.0, 2))
    written = read_state(lines.data).ended
    assert written
    assert {name: written[name] for name in ("not_started", "cancelled", "interrupted", "left", "code")} == {
        "not_started": 1,
        "cancelled": 1,
        "interrupted": 1,
        "left": 2,
        "code": 130,
    }


def test_a_job_that_was_not_started_before_a_resume_is_not_counted_as_failed_when_it_is_tried_again() -> None:
    failed, dropped = (Job(number, b"true", Place(number)) for number in (2, 3))
    ledger = Ledger()
    ledger.take(RunResumed([(failed, "failed"), (dropped, "not started")], [1]))
    ledger.take(JobRequeued(dropped, "retry"))
    assert ledger.counts() == Counts(waiting=1, failed=1, not_started=1)
