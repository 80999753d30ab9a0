"""A curve of any length in a bounded number of points."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.measurement import CurvePoint
from simple_gpu_scheduler.measurements.curves import MOST_POINTS, GrowingCurve, thinned

SECONDS = st.floats(0.05, 5.0)
PERCENT = st.integers(0, 100)
READINGS = st.lists(st.tuples(SECONDS, PERCENT, PERCENT), min_size=1, max_size=400)
FEW = st.integers(2, 40)


def curve(readings: list[tuple[float, int, int]]) -> list[CurvePoint]:
    at, found = 0.0, []
    for seconds, one, other in readings:
        found.append(CurvePoint(at, seconds, (one, other), (one, other)))
        at += seconds
    return found


def area(points: list[CurvePoint], quantity: int = 0) -> float:
    return sum((point.means[quantity] or 0.0) * point.seconds for point in points)


def highest(points: list[CurvePoint], quantity: int = 0) -> float | None:
    return max((point.maxima[quantity] for point in points if point.maxima[quantity] is not None), default=None)


def fed(readings: list[CurvePoint], most: int) -> list[CurvePoint]:
    growing = GrowingCurve(most)
    for point in readings:
        growing.add(point)
    return growing.points


@given(READINGS, FEW)
def test_it_never_has_more_points_than_it_may(readings: list[tuple[float, int, int]], most: int) -> None:
    assert 0 < len(fed(curve(readings), most)) <= most
    assert 0 < len(thinned(curve(readings), most)) <= most


@given(READINGS, FEW, st.integers(0, 1))
def test_it_keeps_the_area_below_and_what_was_highest(
    readings: list[tuple[float, int, int]], most: int, quantity: int
) -> None:
    whole = curve(readings)
    for found in (fed(whole, most), list(thinned(whole, most))):
        assert area(found, quantity) == pytest.approx(area(whole, quantity))
        assert highest(found, quantity) == highest(whole, quantity)
        assert sum(point.seconds for point in found) == pytest.approx(sum(point.seconds for point in whole))


@given(READINGS, FEW)
def test_its_points_stay_in_order_and_begin_where_the_curve_does(
    readings: list[tuple[float, int, int]], most: int
) -> None:
    found = fed(curve(readings), most)
    assert found[0].at == 0
    assert [point.at for point in found] == sorted(point.at for point in found)
    assert all(
        mean <= top + 1e-9 for point in found for mean, top in zip(point.means, point.maxima, strict=True) if top
    )


def test_what_is_unknown_for_a_while_leaves_the_mean_of_what_is_known() -> None:
    known, unknown = CurvePoint(0, 1, (40,), (40,)), CurvePoint(1, 1, (None,), (None,))
    assert fed([known, unknown] * 2, 2) == [CurvePoint(0, 4, (40,), (40,))]


def test_a_day_of_seconds_is_at_most_the_points_of_a_page() -> None:
    points = fed([CurvePoint(at, 1.0, (at % 100,), (at % 100,)) for at in range(86_400)], MOST_POINTS)
    assert MOST_POINTS / 2 <= len(points) <= MOST_POINTS
    assert {round(point.seconds) for point in points[:-1]} == {256}
