"""The picture of a run."""

import io

import pytest

from simple_gpu_scheduler.report.figure import COLOURS, draw, is_picture
from simple_gpu_scheduler.report.numbers import STATES
from tests.support.report import began as run_began
from tests.support.report import built, ended, over, read, started

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"


def colours_of(picture: bytes) -> dict[str, int]:
    """How many pixels have the colour of each outcome."""
    import numpy as np  # noqa: PLC0415 - it comes with matplotlib
    from matplotlib.image import imread  # noqa: PLC0415 - as above

    pixels = (imread(io.BytesIO(picture))[:, :, :3] * 255).round().astype(int)
    return {
        state: int(np.all(pixels == [int(colour[at : at + 2], 16) for at in (1, 3, 5)], axis=2).sum())
        for state, colour in COLOURS.items()
    }


def test_the_picture_shows_what_ran_in_the_colours_of_the_outcomes() -> None:
    report = built(
        run_began(), read(1), read(2), started(0, 1), ended(50, 1),
        started(50, 2, gpus=("1",)), ended(100, 2, outcome="failed", code=1), over(100),
    )  # fmt: skip
    picture = draw(report)
    assert picture.startswith(PNG)
    assert is_picture(picture)
    assert not is_picture(b"true\n")
    seen = colours_of(picture)
    assert seen["succeeded"] > 10_000
    assert 0.8 < seen["failed"] / seen["succeeded"] < 1.25
    assert not seen["killed"]


def test_jobs_that_share_a_gpu_are_drawn_beside_each_other() -> None:
    records = [run_began(), *(read(job) for job in range(1, 6))]
    at_once = [*records, *(started(0, job) for job in range(1, 6)), *(ended(9, job) for job in range(1, 6)), over(9)]
    one_by_one = [*records]
    for job in range(1, 6):
        one_by_one += [started(job, job), ended(job + 1, job)]
    assert height(draw(built(*at_once))) > height(draw(built(*one_by_one, over(9))))


def height(picture: bytes) -> int:
    return int.from_bytes(picture[20:24], "big")


def test_a_run_without_jobs_and_names_that_look_like_formulas_can_be_drawn() -> None:
    assert draw(built(run_began(), over(0))).startswith(PNG)
    report = built(run_began(run="$x^$"), read(1), started(0, 1, gpus=("$\\frac$",)), ended(1, 1), over(2))
    assert draw(report).startswith(PNG)


def test_each_outcome_has_a_colour_of_its_own() -> None:
    assert {*COLOURS} == {*STATES}
    assert len({*COLOURS.values()}) == len(STATES)
