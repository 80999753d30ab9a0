"""This machine as an engine: what it hands to the pool and to the keeper, which are made by hand here."""

import errno
import os
import select
from collections.abc import Sequence
from typing import Any

import pytest

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.engines import protocol
from simple_gpu_scheduler.engines.local import LocalEngine
from simple_gpu_scheduler.engines.protocol import ForEngine, Refused, Setting, Unstoppable
from simple_gpu_scheduler.events import Noticed
from simple_gpu_scheduler.gpus.leases import Hold
from simple_gpu_scheduler.gpus.pool import Demand
from simple_gpu_scheduler.keeper import survivors
from simple_gpu_scheduler.keeper.messages import (
    AttemptEnded,
    BeyondUs,
    Letter,
    MainExited,
    Message,
    Obeyed,
    Start,
    Stop,
)
from simple_gpu_scheduler.keeper.survivors import Survivor, SurvivorExited
from simple_gpu_scheduler.system.inbox import SystemInbox

ATTEMPT = Attempt(Job(1, b"true", Place(1)), 1, ("0",), (1,))
OTHER = Attempt(Job(2, b"-x", Place(2)), 1, ("1",), (2,))


class FakeKeeper:
    """Notes down what it is told."""

    def __init__(self) -> None:
        self.told: list[Message] = []
        self.fd = os.eventfd(0)
        self.known = 0
        self.refuses = False
        self.has_unsent = False

    def create(self) -> bool:
        if self.refuses:
            raise BlockingIOError(errno.EAGAIN, "again")
        return False

    def fileno(self) -> int:
        return self.fd

    def receive(self) -> None:
        """It is gone."""

    def send(self, message: Message, _files: Sequence[int] = ()) -> int:
        self.told.append(message)
        return len(self.told)


class FakePool:
    """Two GPUs, both of which are leased, and whatever is taken is had."""

    def waits(self, _demand: Demand) -> list[Wait]:
        return [Wait(gpu, "leased by root (pid 7)", "leased by root") for gpu in "01"]

    def take(self, *_: object) -> Hold:
        return Hold()


class Subject:
    """An engine, its inbox, and its keeper."""

    def __init__(self, *survivors: Survivor) -> None:
        pool: Any = FakePool()
        nothing: Any = None
        keeper: Any = FakeKeeper()
        self.keeper: FakeKeeper = keeper
        self.inbox = SystemInbox()
        self.engine = LocalEngine(Setting("run", nothing, nothing, self.inbox, survivors=survivors), pool, keeper)

    def start(self, *attempts: Attempt) -> None:
        for attempt in attempts:
            self.engine.take(attempt, 0)
            self.engine.start(attempt)

    def loses_its_keeper(self, *, has_worked: bool) -> object:
        self.keeper.known = int(has_worked)
        self.engine._watch_keeper()
        message = self.engine._read(select.POLLIN)
        assert message
        return message.message

    def hears(self, message: object, number: int = 0) -> list[object]:
        said = Letter(number, 0, message) if number else message
        return list(self.engine.received(said, 0))


def test_one_message_starts_an_attempt_and_one_tells_its_end() -> None:
    subject = Subject()
    subject.start(ATTEMPT, OTHER)
    one, other = subject.keeper.told
    assert isinstance(one, Start)
    assert isinstance(other, Start)
    assert (one.attempt, one.argv) == (b"1.1", (b"/bin/sh", b"-c", b"true"))
    assert other.argv == (b"/bin/sh", b"-c", b"--", b"-x")
    assert one.environment[-1] == b"SGS_TREE=/run.1.1"
    assert subject.hears(AttemptEnded(b"1.1"), 7) == [protocol.Ended(ATTEMPT, SUCCESS, by_itself=True)]
    assert subject.keeper.known == 7, "which every later message says"
    assert subject.hears(MainExited(b"2.1"), 8) == [protocol.Exited(OTHER)]
    ended = AttemptEnded(b"2.1", 15, was_told=1, swept=2, beyond_us=b"3, 4", server=b"tmux")
    assert subject.hears(ended, 9) == [protocol.Ended(OTHER, Outcome("killed", 15), "", 2, "3, 4", "tmux")]


def test_only_what_the_keeper_has_is_asked_to_end_there() -> None:
    subject = Subject()
    subject.start(ATTEMPT)
    subject.engine.stop([ATTEMPT, OTHER], force=True)
    assert subject.keeper.told[1:] == [Stop(b"1.1", 1)]
    assert subject.hears(BeyondUs(b"1.1"), 1) == [Unstoppable(ATTEMPT)]
    subject.hears(AttemptEnded(b"1.1"), 2)
    assert subject.hears(BeyondUs(b"1.1"), 3) == [], "a thread of the keeper said so too late"


def test_why_something_did_not_start_is_said_and_what_may_start_later_waits() -> None:
    subject = Subject()
    subject.start(ATTEMPT)
    [refused] = subject.hears(AttemptEnded(b"1.1", errno=errno.EAGAIN), 1)
    assert isinstance(refused, Refused)
    for number, why in ((errno.ENOENT, "No such file or directory"), (errno.ECANCELED, "it was stopped before it")):
        subject.start(ATTEMPT)
        [ended] = subject.hears(AttemptEnded(b"1.1", errno=number), 1)
        assert isinstance(ended, protocol.Ended)
        assert ended.outcome
        assert ended.outcome.kind == "not started"
        assert ended.outcome.reason.startswith(why)


def test_without_a_keeper_jobs_wait_for_one() -> None:
    subject = Subject()
    subject.keeper.refuses = True
    subject.start(ATTEMPT)
    assert not subject.keeper.told
    message = subject.inbox.get(block=False)
    assert isinstance(message, ForEngine)
    [refused] = subject.hears(message.message)
    assert isinstance(refused, Refused)


def test_what_a_killed_keeper_ran_outlives_it_and_what_a_stillborn_one_got_never_ran(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched: list[object] = []
    monkeypatch.setattr(survivors, "watch_orphans", lambda _traces, awaited, _put: watched.append(set(awaited)))
    monkeypatch.setattr(survivors, "sweep", lambda *_: False)
    subject = Subject()
    subject.start(ATTEMPT)
    outlived = subject.loses_its_keeper(has_worked=True)
    subject.start(OTHER)  # by a message that came before
    assert subject.hears(outlived) == []
    assert subject.hears(AttemptEnded(b"2.1"), 1) == [protocol.Ended(OTHER, SUCCESS, by_itself=True)]
    assert isinstance(subject.inbox.get(block=False), Noticed)
    assert watched == [{(1, 1)}]
    assert subject.hears(SurvivorExited((1, 1), 0)) == [protocol.Ended(ATTEMPT, SUCCESS)]
    subject.start(OTHER)
    [refused] = subject.hears(subject.loses_its_keeper(has_worked=False))
    assert isinstance(refused, Refused)
    assert len(watched) == 1


def test_what_a_killed_keeper_had_not_told_an_attempt_is_told_to_the_survivor(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(survivors, "watch_orphans", lambda *_: None)
    monkeypatch.setattr(survivors, "end", lambda _traces, keys, *, force: told.append((keys, force)))
    subject = Subject()
    subject.start(ATTEMPT, OTHER)
    subject.engine.stop([ATTEMPT, OTHER], force=False)
    subject.hears(Obeyed(b"1.1"), 1)
    subject.hears(subject.loses_its_keeper(has_worked=True))
    assert told == [([(2, 1)], False)]


def test_an_attempt_is_told_to_end_though_that_is_asked_while_its_keeper_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(survivors, "watch_orphans", lambda *_: None)
    monkeypatch.setattr(survivors, "end", lambda _traces, keys, *, force: told.append((keys, force)))
    subject = Subject()
    subject.start(ATTEMPT)
    outlived = subject.loses_its_keeper(has_worked=True)
    subject.engine.stop([ATTEMPT], force=False)
    subject.hears(outlived)
    assert told == [([(1, 1)], False)]


def test_a_gpu_that_a_survivor_has_is_not_said_to_be_somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survivors, "watch", lambda *_: None)
    monkeypatch.setattr(survivors, "sweep", lambda *_: False)
    engine = Subject(Survivor(ATTEMPT, 7, 0.0, 0)).engine
    assert [wait.gpu for wait in engine.waits(Demand(1))] == ["1"]
    engine.received(SurvivorExited(ATTEMPT.key, 0), 0)
    assert [wait.gpu for wait in engine.waits(Demand(1))] == ["0", "1"]
