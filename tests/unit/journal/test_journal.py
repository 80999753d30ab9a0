"""The journal's format: what was written once loads forever, and nothing that happens to a file raises.

The golden file is a run in which everything happens that can. It may not change: another version of the format gets
another file. `python -m tests.unit.journal.test_journal` writes the one of this version.
"""

import json
import random
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Patience, Place
from simple_gpu_scheduler.base.measurement import CpuUse, Figures, GpuUse, Measurement
from simple_gpu_scheduler.journal import VERSION, files, find
from simple_gpu_scheduler.journal.fields import is_sound
from simple_gpu_scheduler.journal.read import read_records
from simple_gpu_scheduler.journal.records import encode, read_options, record, text
from simple_gpu_scheduler.journal.run_state import RunState, read_state
from tests.conftest import ROOT
from tests.support.commands import check_all_commands
from tests.support.journal import GOLDEN, golden, kinds, records

RUN = "20260101-000000-2b4a4e"
BEGIN = 1_767_225_600.0
ALL_BYTES = bytes(range(256))

PREPARE = Job(1, b"python prepare.py", Place(1), name="prepare", gpus=0)
TRAIN = Job(2, b"python train.py --seed 1", Place(2), after=(1,), retries=1)
BROKEN = Job(3, b"python train.py --seed 2", Place(3), name="broken")
AFTER_BROKEN = Job(4, b"python evaluate.py", Place(4), after=(3,))
CANCELLED = Job(5, b"python train.py --seed 3", Place(5, "more.txt"))
LIVES_ON = Job(6, b"python train.py --seed 4", Place(6, "more.txt"))
EXITED = Job(7, b"python train.py --seed 5", Place(7))
KILLED_ON = Job(9, ALL_BYTES + "\u2028".encode(), Place(9))
TOO_LONG = Job(10, b"python train.py --seed 6", Place(10), timeout=1.5)
INTERRUPTED = Job(11, b"python train.py --seed 7", Place(11))
ALL_OPTIONS = Job(12, b"python big.py", Place(12), 2, 2**34, 3600.0, 60.5, 2, -5, "big", (1, 2), "ada")
NO_START = Job(13, b"python train.py --seed 8", Place(13))
GONE = Job(14, b"python train.py --seed 9", Place(14))
SAID_TWICE = Job(15, b"python train.py --seed 10", Place(15), retries=9)
CANCELLED_LATE = Job(16, b"python train.py --seed 11", Place(17))
IN_A_CLUSTER = Job(17, b"python train.py --seed 12", Place(18))
IN_AN_EDITED_FILE = Job(19, b"python eval.py", Place(18, digest="fedcba9876543210"))
STALLED = Job(20, b"python train.py --seed 13", Place(8), stall=Patience(1800.0, ends=True), idle=Patience(0.0))
JOBS = (
    PREPARE, TRAIN, BROKEN, AFTER_BROKEN, CANCELLED, LIVES_ON, EXITED, KILLED_ON, TOO_LONG, INTERRUPTED, ALL_OPTIONS,
    NO_START, GONE, SAID_TWICE, CANCELLED_LATE, IN_A_CLUSTER, IN_AN_EDITED_FILE, STALLED,
)  # fmt: skip

MEASUREMENT = Measurement(
    (
        GpuUse(
            "0", 3600.5, Figures(31.25, 98, 88.0), Figures(12.5, 40), Figures(7e9, 7.6e9), Figures(7.1e9, 7.7e9),
            80 * 2**30, 12.0, Figures(61.5, 71), Figures(250.125, 300.0), Figures(1400.0, 1410), 900_000.25, True,
            {"heat": 1368.0}, {"pcie_sent": 10, "pcie_received": 20}, {"79": 1}, 60.0, ("energy", "power"),
        ),
        GpuUse("MIG-1", 3600.5),
    ),
    CpuUse(812.25, 2.0, 2**30, 0, 4096),
)  # fmt: skip


def began(*, is_resumed: bool = False) -> events.RunBegan:
    return events.RunBegan(
        RUN,
        VERSION,
        "1.0",
        "gpubox",
        "4bca3a9e-8d4c-4b0e-9a43-0d6b6f1c2d3e",
        4243 if is_resumed else 4242,
        123456,
        "/home/user/sweep",
        ("--gpus", "0", "1", "--logs", "logs"),
        [{"kind": "fifo", "path": "/home/user/sweep/gpu.fifo", "name": "", "spool": "input-0"}],
        is_resumed,
    )


def attempt(job: Job, number: int = 1, *gpus: str) -> Attempt:
    return Attempt(job, number, gpus, tuple(range(len(gpus))))


def started(job: Job, number: int = 1, gpu: str = "0") -> events.JobStarted:
    return events.JobStarted(attempt(job, number, gpu), f"/home/user/sweep/logs/{job.number:04}.log")


def ended(
    job: Job, outcome: Outcome = SUCCESS, number: int = 1, *, final: bool = True, stopped: bool = False
) -> events.JobEnded:
    return events.JobEnded(attempt(job, number, "0"), outcome, BEGIN + 5, job.number * 1.5, final, stopped)


FAILED = Outcome("failed", 1)
HUNG = "no output and a constant utilisation of 0 % for 30 min"
STORY: list[events.Event | str] = [
    began(),
    events.Noticed("the named pipe is held open for more commands until the run is stopped"),
    events.JobsRead(JOBS[:7], events.ReadMark("input-0", offset=300, line=8)),
    events.LineRefused(Place(8), "unknown option 'bogus'; did you mean gpus?", 8),
    events.JobsRead(JOBS[7:-4], events.ReadMark("/home/user/q.txt", 66, 2**63 + 1, 1234, 99, 16, {"gpus": 2})),
    events.InputEnded("/home/user/sweep/more.txt"),
    events.Paused(True),
    events.Paused(False),
    events.JobStarted(attempt(PREPARE)),
    ended(PREPARE),
    started(TRAIN),
    ended(TRAIN, FAILED, final=False),
    events.Waited([Wait("1", "alice python 11.2 GiB for 2 h", "alice")]),
    started(BROKEN),
    ended(BROKEN, FAILED),
    events.JobDropped(AFTER_BROKEN, "job 3 did not succeed"),
    events.JobRequeued(BROKEN, "simple_gpu_scheduler retry"),
    events.JobRequeued(AFTER_BROKEN, "simple_gpu_scheduler retry"),
    started(BROKEN, 2),
    ended(BROKEN, FAILED, 2),
    events.JobDropped(AFTER_BROKEN, "job 3 did not succeed"),
    events.JobDropped(CANCELLED, "it was cancelled", is_cancelled=True),
    events.GpuSetAside("1", "3 jobs in a row failed there", [TRAIN]),
    events.GpuReturned("1"),
    started(KILLED_ON),
    ended(KILLED_ON, Outcome("killed", 9)),
    events.LeftBehind(attempt(KILLED_ON), 2, "77"),
    started(TOO_LONG),
    ended(TOO_LONG, Outcome("timed out")),
    started(NO_START),
    ended(NO_START, Outcome("not started", 0, "Argument list too long")),
    events.Noticed("the journal cannot be written: No space left on device; the jobs go on", is_failure=True),
    started(SAID_TWICE),
    ended(SAID_TWICE, FAILED, final=False),
    ended(SAID_TWICE, FAILED),
    started(LIVES_ON),
    started(EXITED),
    started(GONE),
    record("keeper alone", BEGIN, running=[[6, 1, 4250], [7, 1, 4251]]),
    record("job exited", BEGIN - 1, job=9, attempt=1, status=9),
    record("job exited", BEGIN + 40, job=7, attempt=1, status=15),
    began(is_resumed=True),
    started(TRAIN, 2),
    ended(TRAIN, SUCCESS, 2),
    ended(LIVES_ON),
    started(INTERRUPTED),
    events.StopAsked("Ctrl-C", True, False, 1),
    ended(INTERRUPTED, Outcome("killed", 15), stopped=True),
    events.RunEnded(3, 4, 1, 7, 60.5, all_read=True, code=130, left=3),
    began(is_resumed=True),
    events.JobsRead([CANCELLED_LATE]),
    started(CANCELLED_LATE),
    ended(CANCELLED_LATE, Outcome("killed", 15))._replace(length=0.25, is_cancelled=True),
    events.RunEnded(3, 4, 1, 5, 1.5, all_read=True, code=130, left=3, cancelled=2, interrupted=1),
    began(is_resumed=True),
    events.JobsRead([IN_A_CLUSTER]),
    events.JobStarted(attempt(IN_A_CLUSTER)),
    events.JobBegan(attempt(IN_A_CLUSTER), "node7"),
    ended(IN_A_CLUSTER)._replace(length=0.5),
    events.LineRefused(Place(17, digest="0123456789abcdef"), "unknown option 'gpsu'; did you mean gpus?", 18),
    events.JobsRead(
        [IN_AN_EDITED_FILE], events.ReadMark("/home/user/q.txt", 66, 7, 1300, 98, 18, {"gpus": 2}, [9, 15, 18, 19], 15)
    ),
    events.NeighbourCame("2", "alice python", [TRAIN]),
    events.AttemptMeasured(Attempt(TRAIN, 2, ("0",), (0,)), MEASUREMENT),
    events.JobsRead([STALLED], events.ReadMark("input-0", offset=300, line=9, defaults={"idle": Patience(900.0)})),
    started(STALLED),
    events.StallSeen(attempt(STALLED, 1, "0"), "its GPU was at 0 % for 15 min"),
    events.StallSeen(attempt(STALLED, 1, "0"), HUNG, ends=True),
    ended(STALLED, Outcome("stalled", 0, HUNG))._replace(length=0.75),
    events.RunEnded(4, 4, 1, 5, 2.5, all_read=True, code=130, left=3, cancelled=2, stalled=1),
]  # fmt: skip

# What became of each job: its state, how many attempts there were, and how many of these tell nothing.
ENDS = {
    1: ("succeeded", 1, 0),
    2: ("succeeded", 2, 0),
    3: ("failed", 2, 0),
    4: ("not started", 0, 0),
    5: ("cancelled", 0, 0),
    6: ("succeeded", 1, 0),
    7: ("failed", 1, 0),
    9: ("failed", 1, 0),
    10: ("failed", 1, 0),
    11: ("waiting", 1, 1),
    12: ("waiting", 0, 0),
    13: ("not started", 1, 0),
    14: ("running", 1, 0),
    15: ("failed", 1, 0),
    16: ("cancelled", 1, 0),
    17: ("succeeded", 1, 0),
    19: ("waiting", 0, 0),
    20: ("failed", 1, 0),
}


def lines(story: Iterable[events.Event | str]) -> str:
    return "".join(each if isinstance(each, str) else encode(each, BEGIN + second) for second, each in enumerate(story))


def states(state: RunState) -> dict[int, tuple[str, int, int]]:
    return {number: (each.state, each.attempts, each.interrupted) for number, each in state.jobs.items()}


class TestTheGoldenJournal:
    def test_loads_forever(self) -> None:
        state = read_state(golden())
        assert states(state) == ENDS
        assert (state.unreadable, state.unknown, state.run, state.is_finished) == (0, set(), RUN, False)
        assert [each.job for each in state.jobs.values()] == list(JOBS)
        assert (state.first_began["pid"], state.began["pid"], state.began["is_resumed"]) == (4242, 4243, True)
        assert state.refused[8]["problem"] == "unknown option 'bogus'; did you mean gpus?"
        assert {name: mark["offset"] for name, mark in state.marks.items()} == {
            "input-0": 300,
            "/home/user/q.txt": 1300,
        }
        assert state.ended_inputs == {"/home/user/sweep/more.txt"}
        assert state.survivors == {}
        assert state.problems == ["the journal cannot be written: No space left on device; the jobs go on"]
        assert state.ended
        assert (state.ended["code"], state.ended["left"]) == (130, 3)
        assert state.jobs[7].outcome == Outcome("killed", 15)
        assert state.jobs[13].outcome == Outcome("not started", 0, "Argument list too long")
        assert state.jobs[20].outcome == Outcome("stalled", 0, HUNG)
        assert read_options(state.marks["input-0"]["defaults"]) == {"idle": Patience(900.0)}
        assert state.jobs[1].gpus == ()
        assert state.jobs[2].gpus == ("0",)
        assert state.jobs[2].log == "/home/user/sweep/logs/0002.log"

    def test_says_before_the_run_was_resumed_what_is_still_running(self) -> None:
        before = golden()[: golden().index(b'{"event":"run began"', 1)]
        state = read_state(before)
        assert (state.is_keeper_alone, state.survivors, state.ended) == (True, {(6, 1): 4250}, None)
        assert [number for number, each in state.jobs.items() if each.state == "running"] == [6, 14]

    def test_is_what_this_version_writes(self) -> None:
        assert lines(STORY).encode() == golden(VERSION)

    def test_holds_every_kind_of_event_that_is_ever_written(self) -> None:
        assert {type(each) for each in STORY} >= {
            kind
            for kind in get_args(events.Event)
            if kind
            not in (
                events.StatusAsked,
                events.WaitsSeen,
                events.AllRead,
                events.RunResumed,
                events.StartRefused,
                events.CurvesDrawn,
            )
        }
        source = "".join(path.read_text() for path in (ROOT / "simple_gpu_scheduler").rglob("*.py"))
        written = set(re.findall(r"""record\(\s*"([a-z ]+)"|\{"event":"([a-z ]+)\"""", source))
        names = {first or second for first, second in written} | {"paused", "continued"}
        assert names == kinds(golden())
        assert set(RunState()._on) == names

    def test_has_commands_in_it_that_come_back_byte_by_byte(self) -> None:
        assert read_state(golden()).jobs[9].job.command == ALL_BYTES + "\u2028".encode()


def test_memory_that_is_found_out_is_a_field_of_its_own_and_what_was_promised_is_told_with_the_start() -> None:
    job = Job(1, b"x", Place(1), mem_auto=True)
    known = Attempt(job._replace(mem=24 * 2**30), 2, ("0",), (0,))
    scout = Attempt(job, 1, ("0",), (0,), alone=True)
    plain = Attempt(Job(2, b"x", Place(2), mem=5), 1, ("0",), (0,))
    happened = [began(), events.JobsRead([job, plain.job]), *map(events.JobStarted, (scout, known, plain))]
    data = lines(happened).encode()
    told = records(data)
    assert [(each.get("mem"), each.get("mem_auto")) for each in told if each["event"] == "job read"] == [
        (None, True),
        (5, None),
    ]
    assert [(each.get("mem"), each.get("alone")) for each in told if each["event"] == "job started"] == [
        (None, True),
        (24 * 2**30, None),
        (None, None),
    ]
    state = read_state(data)
    assert (state.unreadable, [each.job for each in state.jobs.values()]) == (0, [job, plain.job])


def test_a_refused_line_of_a_followed_file_that_is_recorded_before_earlier_lines_was_read_before_the_mark() -> None:
    good = Job(1, b"true", Place(1, digest="a" * 16))
    bad = events.LineRefused(Place(2, digest="b" * 16), "unknown option", 2)
    state = read_state(lines([began(), bad, events.JobsRead([good], events.ReadMark("/q.txt", offset=9))]).encode())
    assert sorted(state.lines_of("/q.txt").held) == [("a" * 16, 1), ("b" * 16, 2)]
    assert state.lines_of("/q.txt").unmarked == []


# What happens to files.

MORE = encode(events.JobsRead([Job(99, b"more", Place(99))]), BEGIN).encode()


def test_a_journal_that_is_cut_at_any_byte_keeps_all_that_is_before_and_takes_what_is_written_behind() -> None:
    """At any byte of a line, with the line before it; and at the end of each line and around it, with all before."""
    data, known = golden(), records(golden())
    ends = [0, *(match.end() for match in re.finditer(b"\n", data))]
    cuts = [
        (max(0, line - 1), cut) for line, (begin, end) in enumerate(pairwise(ends)) for cut in range(begin, end + 1)
    ]
    cuts += [(0, cut) for end in ends for cut in (end - 1, end, end + 1) if 0 <= cut <= len(data)]
    for first, cut in cuts:
        head = data[ends[first] : cut]
        whole = head.count(b"\n")
        contents = read_records(head)
        assert (contents.records, contents.unreadable) == (known[first : first + whole], 0)
        assert contents.size == head.rfind(b"\n") + 1
        for between in (b"", b"\n"):
            glued = read_records(head + between + MORE)
            assert glued.records[:whole] == known[first : first + whole]
            assert glued.records[-1]["job"] == 99
            assert len(glued.records) + glued.unreadable <= whole + 2


def test_a_state_is_read_of_a_journal_that_is_cut_anywhere_behind_its_first_line() -> None:
    data = golden()
    for cut in range(0, len(data), 7):
        if b"\n" in data[:cut]:
            assert read_state(data[:cut]).run == RUN
        else:
            with pytest.raises(ValueError, match="does not start like a journal"):
                read_state(data[:cut])


def test_a_line_that_a_full_disk_cut_costs_itself_alone() -> None:
    torn = encode(started(PREPARE), BEGIN)[:60]
    state = read_state((lines([began(), events.JobsRead(JOBS)]) + torn + lines([started(TRAIN)])).encode())
    assert (state.unreadable, state.jobs[1].state, state.jobs[2].state) == (1, "waiting", "running")


def test_an_unknown_event_is_skipped_with_a_warning_and_an_unknown_field_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, _, rest = lines(STORY).partition("\n")
    new = '{"event":"gpu \\u001b[2Jwarmed","at":1,"gpu":[1]}\n'
    known = rest.replace(',"job":', ',"x-new":{"a":[null]},"job":')
    path = tmp_path / "journal.jsonl"
    path.write_text(f'{first[:-1]},"colour":"blue"}}\n{new}{known}')
    state = find.load(str(path))
    assert states(state) == ENDS
    assert state.unreadable == 0
    told = capsys.readouterr().err
    assert "events unknown to this version: gpu \\x1b[2Jwarmed" in told
    assert told.count("\n") == 1


def test_a_newer_version_is_refused_whatever_else_it_has_changed() -> None:
    for rest in ("", ',"run":5,"argv":{}'):
        with pytest.raises(ValueError, match=r"newer version \(format 2\)"):
            read_state(f'{{"event":"run began","at":1,"version":2{rest}}}\n'.encode())


@pytest.mark.parametrize(
    "rubbish",
    [
        b"",
        b"\0" * 4096,
        ALL_BYTES * 16,
        b"\n\n\n",
        b"[" * 100_000,
        b'{"event":"run began","at":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"event":"job read","at":NaN,"job":1,"line":1,"command":"x"}',
        b'{"event":"run ended","at":1e999}',
        b'{"event":"job read","at":1,"job":2,"line":1,"command":"\\ud800"}',
        b'{"event":"job read","at":1,"job":2,"line":1,"command":"x","name":"\\ud800"}',
        b'{"event":["run began"]}',
        b'"event"',
    ],
    ids=range(12),
)
def test_rubbish_costs_no_record_before_or_behind_it(rubbish: bytes) -> None:
    head = lines([began(), events.JobsRead(JOBS)]).encode()
    state = read_state(head + rubbish + b"\n" + lines([started(TRAIN)]).encode())
    assert (len(state.jobs), state.jobs[2].state) == (len(JOBS), "running")
    assert state.unreadable >= bool(rubbish.strip())


# Records with anything in them.

_ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "\udc00", 2**64, 1e300]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """The golden journal, with some of its fields replaced or taken out."""
    found = records(golden())
    for _ in range(draw(st.integers(1, 4))):
        each = found[draw(st.integers(0, len(found) - 1))]
        name = draw(st.sampled_from(sorted(each)))
        if draw(st.integers(0, 3)) or name == "event":
            each[name] = draw(_ANY)
        else:
            del each[name]
    return "".join(json.dumps(each) + "\n" for each in found).encode()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spoiled") / "journal.jsonl"


@settings(max_examples=60, deadline=None)
@given(data=spoiled())
def test_whatever_is_in_a_field_only_a_value_error_is_raised_then_or_later(data: bytes, place: Path) -> None:
    check_all_commands(data, place)


# What is written is what is read.


def test_a_record_that_this_version_writes_is_always_taken() -> None:
    for each in records(lines(STORY).encode()):
        assert is_sound(each), each


@settings(max_examples=200)
@given(command=st.binary(), name=st.binary(max_size=9))
@example(command=ALL_BYTES, name=b"\xff")
@example(command="\u2028\u2029\x85".encode(), name=b"")
@example(command=b'\xed\xa0\x80{"event":"run ended"}\r\n', name=b"")
@example(command=b'{"event":"', name=b"")
def test_any_command_comes_back_byte_by_byte_and_every_line_is_json(command: bytes, name: bytes) -> None:
    job = Job(1, command, Place(1, text(name)), name=text(name))
    line = encode(events.JobsRead([job]), BEGIN)
    assert line.isascii()
    assert (line.count("\n"), line.count('{"event":"'), line[-1]) == (1, 1, "\n")
    state = read_state((lines([began()]) + line).encode())
    assert (state.jobs[1].job, state.unreadable) == (job, 0)


class Happening:
    """A run in which things happen at random, and which remembers itself how each job stands."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.story: list[events.Event | str] = [began()]
        self.ends: dict[int, tuple[str, int, int]] = {}
        self.jobs: dict[int, Job] = {}

    def set(self, number: int, state: str, more: int = 0, interrupted: int = 0) -> None:
        _, attempts, told_nothing = self.ends[number]
        self.ends[number] = state, attempts + more, told_nothing + interrupted

    def step(self) -> None:
        number = self.chance.choice([0, *self.jobs])
        if not number:
            self.read()
            return
        state, attempts, _ = self.ends[number]
        job = self.jobs[number]
        if state == "waiting":
            self.leave_waiting(job, attempts + 1)
        elif state == "running":
            self.end(job, attempts)
        elif state != "succeeded" and self.chance.random() < 0.5:
            self.story.append(events.JobRequeued(job, "retry"))
            self.set(number, "waiting")

    def read(self) -> None:
        number = len(self.jobs) + 1
        self.jobs[number] = Job(number, self.chance.randbytes(5), Place(number), priority=self.chance.randint(-1, 1))
        self.ends[number] = "waiting", 0, 0
        self.story.append(events.JobsRead([self.jobs[number]], self.chance.choice([None, events.ReadMark("input-0")])))

    def leave_waiting(self, job: Job, number: int) -> None:
        if self.chance.random() < 0.8:
            self.story.append(started(job, number))
            self.set(job.number, "running", more=1)
        else:
            cancelled = self.chance.random() < 0.5
            self.story.append(events.JobDropped(job, "why", cancelled))
            self.set(job.number, "cancelled" if cancelled else "not started")

    def end(self, job: Job, number: int) -> None:
        how = self.chance.choice(("succeeded", "failed", "again", "interrupted", "crash", "exited"))
        if how == "crash":
            self.crash()
        elif how == "exited":
            status = self.chance.choice((0, 256, 9))
            self.story.append(record("job exited", BEGIN, job=job.number, attempt=number, status=status))
            self.set(job.number, "failed" if status else "succeeded")
        else:
            outcome = SUCCESS if how == "succeeded" else FAILED
            event = ended(job, outcome, number, final=how != "again", stopped=how == "interrupted")
            self.story.append(event)
            state = "waiting" if how == "again" else how
            self.set(job.number, state, interrupted=how == "interrupted")

    def crash(self) -> None:
        """All that ran is started anew."""
        self.story.append(began(is_resumed=True))
        for number, (state, attempts, _) in self.ends.items():
            if state == "interrupted":
                self.set(number, "waiting")
            if state == "running":
                self.story.append(started(self.jobs[number], attempts + 1))
                self.set(number, "running", more=1, interrupted=1)


@settings(max_examples=100, deadline=None)
@given(chance=st.randoms(use_true_random=False), steps=st.integers(0, 60))
def test_what_happened_is_what_is_read(chance: random.Random, steps: int) -> None:
    run = Happening(chance)
    for _ in range(steps):
        run.step()
    state = read_state(lines(run.story).encode())
    assert states(state) == run.ends
    assert {number: each.job for number, each in state.jobs.items()} == run.jobs
    assert (state.unreadable, state.unknown) == (0, set())


def test_a_journal_of_a_run_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    files.create(str(path))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_start_that_the_system_refused_is_no_attempt() -> None:
    attempt = Attempt(PREPARE, 1, (), (0,))
    happened = [began(), events.JobsRead([PREPARE]), events.JobStarted(attempt), events.StartRefused(attempt, "full")]
    state = read_state("".join(encode(event, BEGIN) for event in happened).encode())
    assert (state.jobs[1].state, state.jobs[1].attempts, state.jobs[1].interrupted) == ("waiting", 0, 0)
    happened += [events.JobStarted(attempt), events.JobEnded(attempt, SUCCESS, BEGIN, 1.0, True)]
    state = read_state("".join(encode(event, BEGIN) for event in happened).encode())
    assert (state.jobs[1].state, state.jobs[1].attempts, state.jobs[1].interrupted) == ("succeeded", 1, 0)


if __name__ == "__main__":
    (GOLDEN / f"journal-{VERSION}.jsonl").write_text(lines(STORY))


def test_figures_that_are_nested_without_end_are_no_figures() -> None:
    nested = '{"a":' * 900 + "1" + "}" * 900
    assert not is_sound(json.loads(f'{{"event":"attempt measured","cpu":{nested}}}'))
