"""The picture of the live view: what it holds, and what it leaves out where there is too little room."""

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Job, Place
from simple_gpu_scheduler.display.live.frame import Failed, Picture, RunningJob, frame
from simple_gpu_scheduler.events.eta import Eta
from simple_gpu_scheduler.events.ledger import Counts
from simple_gpu_scheduler.gpus import GpuVitals


def job(number: int) -> Job:
    return Job(number, b"true", Place(number))


# What it looks like.


def picture(jobs: int = 2, **settings: object) -> Picture:
    running = [
        RunningJob(Attempt(job(number)._replace(name="a" * number), 1, (str(number),), (number,)), 5.0, "x" * 200)
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


def test_what_has_ended_is_reported_with_how_it_ended() -> None:
    counts = Counts(waiting=3, running=2, succeeded=4, failed=1, timed_out=1, not_started=1, cancelled=2)
    *_, last = texts(frame(picture(counts=counts), 200, 30))
    assert last.lstrip("━─ ") == (
        "9 of 14 done, 2 failed, 1 not started, 2 cancelled, 2 running, 3 waiting, about 1 min left"
    )
    *_, last = texts(frame(picture(counts=Counts(succeeded=2), all_read=False), 200, 30))
    assert last.lstrip("━─ ") == "2 of 2 done so far, 0 running, 0 waiting"
    bar = frame(picture(counts=counts), 200, 30)[-1][:3]
    assert [(len(text.strip()), style) for text, style in bar] == [(8, "green"), (11, "red"), (11, "dim")]


SWEEP = [(lr, seed) for lr in ("0.1", "0.01") for seed in "12"]


def sweep(printed: str) -> list[str]:
    """The rows of four jobs with the values of `SWEEP`, at 80 columns."""
    shared = "python3 train.py --data /data/imagenet --model resnet50 --epochs 100 --output /scratch/me/runs"
    jobs = [
        Job(number, f"{shared} --lr {lr} --amp --seed {seed}".encode(), Place(number))
        for number, (lr, seed) in enumerate(SWEEP, 97)
    ]
    running = [RunningJob(Attempt(job, 1, (str(at),), (at,)), 5.0, printed) for at, job in enumerate(jobs)]
    return texts(frame(picture(4, running=running), 79, 30))[2:6]


def test_at_80_columns_what_commands_share_is_cut_first() -> None:
    for at, (row, (lr, seed)) in enumerate(zip(sweep("epoch 3"), SWEEP, strict=True)):
        gpu, number, *words = row.split()
        assert (gpu, number) == (str(at), str(97 + at))
        assert {lr, seed} <= {*words[: words.index("5.0")]}
        assert row.endswith("  epoch 3")


def test_before_jobs_have_printed_anything_their_commands_have_that_room_and_are_not_repeated() -> None:
    for row, (lr, seed) in zip(sweep(""), SWEEP, strict=True):
        command, _, rest = row.partition(" 5.0 s")
        assert f"--lr {lr} … --seed {seed}" in command
        assert not set(rest) & set("plr"), "LAST OUTPUT is empty"


def test_at_80_columns_a_reason_to_wait_says_for_how_long() -> None:
    reason = Wait("1", "alice python 9.0 GiB for 26 min", "alice")
    running = [RunningJob(Attempt(job(1), 1, ("0",), (0,)), 14.0, "epoch 3")]
    lines = texts(frame(picture(2, running=running, waits=[reason]), 79, 23))
    assert lines[3].endswith("  1.0 / 80.0 GiB  alice python 9.0 GiB for 26 min")


def test_no_picture_is_higher_than_the_terminal() -> None:
    picture = Picture([], [], Counts(waiting=3), True, Eta(None))
    assert [len(frame(picture, 80, height)) <= height for height in range(4)] == [True] * 4
