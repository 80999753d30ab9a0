"""How a run is shown is decided from what was typed and what the streams are; and what the view looks like."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Job, Place
from simple_gpu_scheduler.display.live.frame import Failed, Picture, ShownAttempt, frame
from simple_gpu_scheduler.events.eta import Eta
from simple_gpu_scheduler.events.ledger import Counts
from simple_gpu_scheduler.gpus import GpuVitals
from simple_gpu_scheduler.run.setup.display import OwnStreams, Showing, decide


class Typed(NamedTuple):
    """The options that matter here."""

    progress: str | None = None
    output: str | None = None
    logs: str | None = None
    logs_failed_only: bool = False
    quiet: bool = False
    runs_nothing: bool = False


def shown(can_draw: bool, stdout: str, **typed: object) -> Showing | str:
    try:
        return decide(Typed(**typed), OwnStreams(can_draw, stdout))  # type: ignore[arg-type]
    except UserError as error:
        return str(error)


BOTH, ERRORS = (1, 2), (2,)
LIVE_FILES, PLAIN = Showing("live", "files", BOTH), Showing()


@pytest.mark.parametrize(
    ("can_draw", "stdout", "typed", "expected"),
    [
        (True, "terminal", {}, PLAIN),
        (True, "terminal", {"progress": "live"}, LIVE_FILES),
        (True, "terminal", {"logs": "x"}, LIVE_FILES),
        (True, "terminal", {"output": "files"}, LIVE_FILES),
        (True, "pipe", {"output": "files"}, LIVE_FILES),
        (True, "terminal", {"logs_failed_only": True}, LIVE_FILES),
        (True, "terminal", {"output": "files", "progress": "plain"}, Showing("plain", "files", BOTH)),
        (True, "terminal", {"output": "files", "progress": "none"}, Showing("none", "files", BOTH)),
        (True, "terminal", {"output": "files", "quiet": True}, Showing("plain", "files", BOTH)),
        (True, "terminal", {"output": "tag"}, Showing("plain", "tag", BOTH)),
        (True, "terminal", {"output": "inherit"}, PLAIN),
        (True, "elsewhere", {}, Showing("live", "inherit", ERRORS)),
        (True, "elsewhere", {"output": "tag"}, Showing("live", "tag", BOTH)),
        (True, "elsewhere", {"output": "group", "logs": "x"}, Showing("live", "group", BOTH)),
        (True, "pipe", {}, PLAIN),
        (True, "pipe", {"progress": "live"}, Showing("live", "inherit", ERRORS)),
        (True, "pipe", {"output": "group"}, Showing("plain", "group", BOTH)),
        (True, "pipe", {"output": "group", "progress": "live"}, Showing("live", "group", BOTH)),
        (False, "elsewhere", {}, PLAIN),
        (False, "terminal", {"progress": "live"}, PLAIN),
        (False, "pipe", {"progress": "none"}, Showing("none")),
        (False, "pipe", {"logs": "x"}, Showing("plain", "files", BOTH)),
        (False, "terminal", {"progress": "live", "output": "inherit"}, PLAIN),
        (True, "elsewhere", {"runs_nothing": True, "logs": "x", "progress": "live"}, PLAIN),
    ],
    ids=str,
)
def test_what_is_typed_and_where_it_goes_decide(can_draw: bool, stdout: str, typed: dict, expected: Showing) -> None:
    assert shown(can_draw, stdout, **typed) == expected


@pytest.mark.parametrize("output", ["inherit", "group", "tag"])
def test_a_view_and_the_output_of_jobs_do_not_go_to_the_same_terminal(output: str) -> None:
    assert "want the same terminal" in str(shown(True, "terminal", progress="live", output=output))


@given(
    st.booleans(),
    st.sampled_from(["terminal", "pipe", "elsewhere"]),
    st.sampled_from([None, "live", "plain", "none"]),
    st.sampled_from([None, "inherit", "group", "tag", "files"]),
    st.booleans(),
    st.booleans(),
)
def test_nothing_ever_prints_over_a_view(
    can_draw: bool, stdout: str, progress: str | None, output: str | None, has_logs: bool, quiet: bool
) -> None:
    found = shown(can_draw, stdout, progress=progress, output=output, logs="x" if has_logs else None, quiet=quiet)
    if isinstance(found, Showing) and found.progress == "live":
        assert can_draw
        assert 2 in found.logged
        assert stdout != "terminal" or (found.output == "files" and 1 in found.logged)


def job(number: int) -> Job:
    return Job(number, b"true", Place(number))


# What it looks like.


def picture(jobs: int = 2, **settings: object) -> Picture:
    running = [
        ShownAttempt(Attempt(job(number)._replace(name="a" * number), 1, (str(number),), (number,)), 5.0, "x" * 200)
        for number in range(jobs)
    ]
    gpus = [GpuVitals(str(number), 50, 2**30, 80 * 2**30, 60, 300.0) for number in range(jobs)]
    values = {"running": running, "gpus": gpus, "counts": Counts(3, jobs, 1, 1), "all_read": True}
    return Picture(**{**values, "eta": Eta(60.0), **settings})  # type: ignore[arg-type]


def texts(lines: list) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


FULL = {
    "waits": [Wait("9", "leased by bob", "bob")],
    "failures": [Failed("job 1 failed: \u6f22\u5b57" * 9, ["one", "\x1b[31m\u202etwo"])] * 2,
    "state": "paused",
}


@given(st.integers(0, 30), st.integers(1, 200), st.integers(1, 60), st.booleans())
def test_it_always_fits(jobs: int, width: int, height: int, is_full: bool) -> None:
    from rich.cells import cell_len  # noqa: PLC0415 - only here

    lines = texts(frame(picture(jobs, **(FULL if is_full else {})), width, height))
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)
    assert not any(char in line for line in lines for char in "\x1b\n\r\u202e")


def test_what_matters_least_is_left_out_first() -> None:
    wide, narrow = (texts(frame(picture(), width, 30))[1].split() for width in (120, 60))
    assert wide == ["GPU", "JOB", "TRY", "TIME", "UTIL", "MEMORY", "TEMP", "POWER", "LAST", "OUTPUT"]
    assert narrow == ["GPU", "JOB", "TIME", "MEMORY", "LAST", "OUTPUT"]
    low = texts(frame(picture(20), 100, 10))
    assert low[-2:] == ["… 13 more rows (terminal too short)", low[-1]]
    assert "7 of 25 done" not in low[-1]
    assert "2 of 25 done, 1 failed, 20 running, 3 waiting, about 1 min left" in low[-1]


def test_what_has_ended_is_told_by_how_it_ended() -> None:
    counts = Counts(waiting=3, running=2, succeeded=4, failed=1, timed_out=1, not_started=1, cancelled=2)
    *_, last = texts(frame(picture(counts=counts), 200, 30))
    assert last.lstrip("━─ ") == (
        "9 of 14 done, 2 failed, 1 not started, 2 cancelled, 2 running, 3 waiting, about 1 min left"
    )
    *_, last = texts(frame(picture(counts=Counts(succeeded=2), all_read=False), 200, 30))
    assert last.lstrip("━─ ") == "2 of 2 read so far done, 0 running, 0 waiting"
    bar = frame(picture(counts=counts), 200, 30)[-1][:3]
    assert [(len(text.strip()), style) for text, style in bar] == [(8, "green"), (11, "red"), (11, "dim")]
