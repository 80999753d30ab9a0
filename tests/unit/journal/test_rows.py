"""The jobs of a run, as rows and as commands to be run again."""

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.jobfile.parse import LineParser
from simple_gpu_scheduler.jobfile.split import LineCutter
from simple_gpu_scheduler.journal import rows as past
from simple_gpu_scheduler.journal.records import option_values
from simple_gpu_scheduler.journal.run_state import RunState, read_state
from tests.support.runs import FIRST, began, ended, journal_of

PIECES = (
    *(b"a", b"echo", b" ", b"  ", b"\t", b"\n", b"\r", b"\\", b"'", b'"', b"#", b"# note", b"$(", b")", b"`", b"${x"),
    *(b"}", b"<<E\n", b"\nE", b"\nE\n", b"\xff", "é".encode(), b"\xef\xbb\xbf", b"#:", b"\\\n", b";"),
)
NAMED = ("name=a", "name=b", "name=\u00e9:1", "after=a", "after=a,b")
KEPT = (
    *(
        "gpus=0",
        "gpus=3",
        "mem=10G",
        "mem=1.5G",
        "mem=0",
        "mem=auto",
        "mem=1000001",
        "mem=999999999999999.5T",
        "timeout=90",
    ),
    *("timeout=1h30m", "timeout=0.1", "timeout=0", "timeout=0.000000000000001s", "time=2d", "time=12345.678h"),
    *("retries=0", "retries=2", "priority=-3", "priority=7", "label=ada", "label=\u00e9:1"),
    *("stall=30m", "stall=1.5s:end", "stall=0:end", "idle=0", "idle=12345.678h:end"),
)
commands = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map(b"".join)
options = st.lists(st.sampled_from(NAMED + KEPT), max_size=4).map(" ".join)
defaults = st.lists(st.sampled_from(KEPT), max_size=2).map(" ".join)
lines = st.one_of(
    commands,
    st.builds(lambda command, words: command + f" #: {words}".encode(), commands, options),
    defaults.map(lambda words: f"#: {words}".encode()),
)


def read(text: bytes, *, by_null: bool) -> list[Job]:
    """The jobs that a run reads there."""
    parser, cutter = LineParser(lambda: (float("inf"),) * 4), LineCutter(by_null=by_null)
    parsed = [parser.parse(*line) for line in [*cutter.feed(text), *cutter.finish()]]
    return [each for each in parsed if isinstance(each, Job)]


def content(jobs: Sequence[Job], numbers: set[int]) -> list[object]:
    """What is to be the same when jobs are read again, with other numbers; `after` without those that are not there."""
    places = {each.number: place for place, each in enumerate(jobs)}
    return [
        (each.command, option_values(each), each.name, [places[number] for number in each.after if number in numbers])
        for each in jobs
    ]


def state_of(jobs: Sequence[Job], succeeded: Sequence[Job]) -> RunState:
    ends = [event for each in succeeded for event in ended(each)]
    return read_state(journal_of(began(FIRST), events.JobsRead(jobs), *ends))


@settings(deadline=None, max_examples=150)
@given(st.lists(lines, max_size=6), st.booleans(), st.sets(st.integers(0, 5)))
@example([b"a #: name=a", b"b #: name=a", b"c #: after=a"], False, {1})
@example([b"#: gpus=3", b"\xef\xbb\xbf\xef\xbb\xbfa # note", b"#:", b"b"], False, set())
@example([b"#: gpus=3", b"cat <<E\nE", b"x   "], True, set())
@example([b"echo # note\n#: name=a timeout=0.1"], True, set())
@example([b"#\r<<E\n #: "], True, set())
def test_commands_are_read_again_as_the_same_jobs(texts: list[bytes], by_null: bool, done: set[int]) -> None:
    jobs = read(b"".join(text + (b"\0" if by_null else b"\n") for text in texts), by_null=by_null)
    succeeded = [each for place, each in enumerate(jobs) if place in done]
    state = state_of(jobs, succeeded)
    rows = past.job_rows(state, "interrupted", 0, ["waiting"])
    left = [row.job for row in rows if row.job]
    assert [each.number for each in left] == [each.number for each in jobs if each not in succeeded]
    try:
        text = past.commands(rows, state, by_null=by_null)
    except ValueError:
        # At the end of a line these two mean something else; at the end of the input a backslash does not.
        assert not by_null
        assert any(each.command.endswith((b"\r", b"\\")) for each in left)
        return
    again = read(text, by_null=by_null)
    assert content(again, {each.number for each in again}) == content(left, {each.number for each in left})
