"""The pictures for a paper."""

import io

import pytest

from simple_gpu_scheduler.journal.samples import curves_in
from simple_gpu_scheduler.report.figure import draw
from simple_gpu_scheduler.report.pictures import draw_pictures
from tests.support.night import night
from tests.support.report import began, built, curve, ended, measured, over, read, started, use_of_gpu

pytest.importorskip("matplotlib")

NAMES = {"utilization.png", "memory_copy.png", "temperature.png", "power.png"}


def size(picture: bytes) -> tuple[int, int]:
    return int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")


def inches(picture: bytes) -> float:
    from PIL import Image  # noqa: PLC0415 - it comes with matplotlib

    with Image.open(io.BytesIO(picture)) as opened:
        return round(opened.width / opened.info["dpi"][0], 2)


def test_a_run_of_many_gpus_fills_two_columns_and_a_job_one() -> None:
    dark = night(40, 8, most_points=50)
    curves = curves_in(dark.samples)
    whole = draw_pictures(built(*dark.records, curves=curves, now=1e5))
    job = draw_pictures(built(*dark.records, curves=curves, now=1e5, job=3))
    assert whole.keys() == job.keys() == NAMES
    assert {inches(each) for each in whole.values()} == {7.0}
    assert {inches(each) for each in job.values()} == {3.5}
    few = night(20, 4, most_points=50)
    four = draw_pictures(built(*few.records, curves=curves_in(few.samples), now=1e5))
    assert {inches(each) for each in four.values()} == {3.5}
    assert size(four["power.png"])[1] < size(whole["power.png"])[1]
    assert min(size(each)[0] for each in job.values()) >= 3.5 * 200


def test_what_no_gpu_told_has_no_picture_and_a_gap_is_none() -> None:
    used = measured(30, 1, use_of_gpu(seconds=20))
    drawn = {(1, 1): [curve([(0, 50), (20, None)], temperature=60.0)]}
    report = built(began(), read(1), started(0, 1), used, ended(30, 1), over(30), curves=drawn)
    assert draw_pictures(report).keys() == {"utilization.png", "temperature.png"}


def test_a_gpu_with_a_strange_name_and_one_that_did_not_change_can_be_drawn() -> None:
    records = began(), read(1), started(0, 1, gpus=("$\\frac$",)), ended(30, 1, runtime=30), over(30)
    drawn = {(1, 1): [curve([(0, 0), (10, 0)], gpu="$\\frac$", power=0.0, temperature=40.0)]}
    report = built(*records, curves=drawn)
    assert len(draw_pictures(report)) == 3
    assert draw(report).startswith(b"\x89PNG")


def test_the_chart_shows_how_busy_each_gpu_was() -> None:
    records = [began(), read(1), started(0, 1), measured(100, 1, use_of_gpu()), ended(100, 1, runtime=100), over(100)]
    plain = draw(built(*records))
    busy = [(float(at), 0.0 if at < 50 else 90.0) for at in range(0, 100, 10)]
    with_curve = draw(built(*records, curves={(1, 1): [curve(busy)]}))
    assert zero_pixels(plain) == 0
    # At 0 % for half of the run: half of a lane.
    assert zero_pixels(with_curve) > 10_000


def zero_pixels(picture: bytes) -> int:
    import numpy as np  # noqa: PLC0415 - it comes with matplotlib
    from matplotlib.image import imread  # noqa: PLC0415 - as above

    pixels = (imread(io.BytesIO(picture))[:, :, :3] * 255).round().astype(int)
    return int(np.all(pixels == [0xB0, 0x12, 0x6F], axis=2).sum())
