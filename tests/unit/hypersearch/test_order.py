"""The order in which a space is visited: shuffled, drawn or quasi-random; computed from the seed, and never stored."""

import tracemalloc
from collections import Counter
from collections.abc import Iterable
from itertools import islice, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.hypersearch.generators import parse_values
from simple_gpu_scheduler.hypersearch.order import fold, mix, shuffled, unit
from simple_gpu_scheduler.hypersearch.points import Order, Point, points
from simple_gpu_scheduler.hypersearch.space import Space, make_space
from simple_gpu_scheduler.hypersearch.sweep import Rows, WrittenValues

SEEDS = st.integers(-(2**80), 2**80)
RANDOM = Order(is_shuffled=True, sampler="", samples=None, seed=7)
HUGE = 10**12
SAMPLERS = ["sobol", "halton", "lhs"]


def space_of(**words: str) -> Space:
    """The space of parameters as they are typed: `a="1 2 3"`."""
    return make_space(
        {name: parse_values(name, WrittenValues(tuple(text.split()))) for name, text in words.items()}, (), Rows()
    )


def chi_square(found: Iterable[int], bins: int) -> float:
    """How uneven whole numbers below `bins` are, in standard deviations beyond what chance makes of them."""
    counts = Counter(found)
    mean = counts.total() / bins
    statistic = sum((counts[one] - mean) ** 2 / mean for one in range(bins))
    return (statistic - bins) / (2 * bins) ** 0.5


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 5000), SEEDS)
@example(0, 0)
@example(1, 0)
@example(1025, 1)
@example(1089, 1)
def test_shuffled_is_a_permutation(size, seed) -> None:
    assert sorted(shuffled(size, seed)) == list(range(size))


@settings(max_examples=60, deadline=None)
@given(st.integers(1025, 10**18), SEEDS)
@example(10**18, 0)
@example((10**9 - 1) ** 2 + 1, -1)
def test_the_first_thousand_of_very_many_are_different_and_in_range(size, seed) -> None:
    first = list(islice(shuffled(size, seed), 1000))
    assert len(set(first)) == 1000
    assert 0 <= min(first) <= max(first) < size
    assert first == list(islice(shuffled(size, seed), 1000))


SIZES = [100, 1000, 1025, 2000, 5000, 10_007, 10**5, 10**9, 10**18]


@pytest.mark.parametrize("size", SIZES)
def test_whatever_the_seed_each_thing_is_as_likely_to_come_first(size: int) -> None:
    first = [next(iter(shuffled(size, seed))) * 20 // size for seed in range(400)]
    assert chi_square(first, 20) < 6


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [1, 2, -1])
def test_places_have_nothing_to_do_with_what_stands_there(size: int, seed: int) -> None:
    order = list(islice(shuffled(size, seed), 10_000))
    tenths = (at * 10 // len(order) * 10 + number * 10 // size for at, number in enumerate(order))
    assert chi_square(tenths, 100) < 6


def step_unevenness(size: int, seed: int) -> float:
    """How uneven the distances are between one number of the order and the next."""
    order = list(islice(shuffled(size, seed), 10_000))
    return chi_square(((b - a) % size * 50 // size for a, b in pairwise(order)), 50)


@pytest.mark.parametrize("size", [100, 1000, 10**9, HUGE, 10**18])
def test_neighbours_have_nothing_to_do_with_each_other(size: int) -> None:
    assert max(step_unevenness(size, seed) for seed in range(10)) < 6


@pytest.mark.parametrize("size", [1025, 2000, 5000, 10_007, 10**5])
def test_neighbours_in_orders_of_some_thousands_have_nothing_to_do_with_each_other(size: int) -> None:
    assert max(step_unevenness(size, seed) for seed in range(20)) < 10


@pytest.mark.parametrize("size", [20, 1024, 1025, HUGE])
def test_different_seeds_have_different_orders(size: int) -> None:
    seeds = [*range(-20, 20), 2**31, 2**63, 2**64 - 100, -(2**62), -(2**40)]
    assert len({tuple(islice(shuffled(size, seed), 20)) for seed in seeds}) == len(seeds)


def test_seeds_that_differ_beyond_64_bits_have_different_orders_too() -> None:
    seeds = [0, -1, 1, -2, 5, 2**64, 2**64 + 5, -(2**64), 2**64 - 1, 10**400, -(10**400)]
    assert len({fold(seed) for seed in seeds}) == len(seeds)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=50, unique=True))
def test_mixing_keeps_different_numbers_different(numbers) -> None:
    mixed = {mix(number) for number in numbers}
    assert len(mixed) == len(numbers)
    assert all(0 <= number < 2**64 for number in mixed)


@given(SEEDS, st.integers(0, 100), st.integers(0, 2**40))
def test_random_numbers_are_above_0_and_below_1(seed, series, number) -> None:
    mixed_to_nothing = -0x9E3779B97F4A7C15 % 2**64
    assert 0 < unit(seed, series, mixed_to_nothing ^ mix(mix(seed % 2**64) ^ series)) < 2**-50
    assert 0 < unit(seed, series, number) < 1


def test_random_numbers_are_even_and_so_are_pairs_of_series_and_of_neighbours() -> None:
    one, other = ([int(unit(5, series, at) * 20) for at in range(5000)] for series in (0, 1))
    assert chi_square(one, 20) < 6
    assert chi_square((a * 20 + b for a, b in zip(one, other, strict=True)), 400) < 6
    assert chi_square((a * 20 + b for a, b in pairwise(one)), 400) < 6


def test_samples_of_a_huge_grid_are_different_and_cost_neither_time_nor_memory() -> None:
    space = space_of(a="range:1:1e6", b="range:0:1:0.001", c="int:1:999")
    found = [tuple(point.places) for point in islice(points(space, RANDOM), 1000)]
    assert len(set(found)) == 1000
    assert all(
        0 <= place < factor.size for places in found for place, factor in zip(places, space.factors, strict=True)
    )
    assert chi_square((places[0] * 20 // 10**6 for places in found), 20) < 6
    assert chi_square((places[2] * 20 // 999 for places in found), 20) < 6


@pytest.mark.parametrize("words", [{"a": "range:1:1e6", "b": "range:1:1e6"}, {"a": "uniform:0:1", "b": "range:1:9"}])
@pytest.mark.parametrize("is_shuffled", [True, False])
def test_a_long_stream_takes_no_memory(words: dict[str, str], is_shuffled: bool) -> None:
    space, peaks = space_of(**words), []
    tracemalloc.start()
    try:
        stream = points(space, RANDOM._replace(is_shuffled=is_shuffled))
        for _ in range(3):
            for _ in islice(stream, 2000):
                pass
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert peaks[-1] < 100_000
    assert peaks[-1] - peaks[0] < 10_000


def test_the_order_of_the_grid_has_the_last_parameter_fastest() -> None:
    found = [point.places for point in points(space_of(a="x y", b="range:1:3"), RANDOM._replace(is_shuffled=False))]
    assert found == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_with_drawn_values_each_combination_of_listed_ones_comes_equally_often(is_shuffled: bool) -> None:
    space = space_of(a="x y z", d="uniform:0:1", b="1 2", e="uniform:0:1")
    found = list(islice(points(space, RANDOM._replace(is_shuffled=is_shuffled)), 60))
    rounds = [[tuple(point.places) for point in found[at : at + 6]] for at in range(0, 60, 6)]
    assert all(len(set(one)) == 6 for one in rounds)
    assert (len(set(map(tuple, rounds))) > 5) is is_shuffled
    assert len({value for point in found for value in point.drawn}) > 110  # no series is another one


SPACES = [{"a": "range:1:1e6", "b": "range:1:1e6"}, {"a": "x y z", "d": "uniform:0:1"}, {"a": "int:1:500"}]


def first_points(how_many: int, sampler: str = "", **words: str) -> list[Point]:
    order = RANDOM._replace(sampler=sampler, samples=how_many)
    return list(islice(points(space_of(**words), order), how_many))


@pytest.mark.parametrize("sampler", ["", "sobol", "halton"])
@pytest.mark.parametrize("words", SPACES)
def test_a_smaller_sample_is_the_beginning_of_a_larger_one(words: dict[str, str], sampler: str) -> None:
    larger = first_points(300, sampler, **words)
    assert all(first_points(size, sampler, **words) == larger[:size] for size in (1, 2, 7, 100, 299))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_quasi_random_points_fill_each_parameter_evenly(sampler: str) -> None:
    found = first_points(64, sampler, a="range:0:63", d="uniform:0:1", b="x y z w")
    in_eighths = [
        Counter(point.places[0] // 8 for point in found),
        Counter(int(float(point.drawn[0]) * 8) for point in found),
    ]
    most, least = (9, 7) if sampler != "halton" else (12, 5)
    assert all(least <= counts[eighth] <= most for counts in in_eighths for eighth in range(8))
    assert all(14 <= count <= 18 for count in Counter(point.places[1] for point in found).values())


@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_a_latin_hypercube_has_one_point_in_each_stratum(size: int) -> None:
    found = first_points(size, "lhs", a=f"range:1:{size}", d="uniform:0:1", l="loguniform:1e-5:1e5")
    assert sorted(point.places[0] for point in found) == list(range(size))
    assert sorted(int(float(point.drawn[0]) * size) for point in found) == list(range(size))


def test_samplers_and_seeds_differ() -> None:
    space = space_of(d="uniform:0:1")
    orders = [Order(True, sampler, 3, seed) for sampler in SAMPLERS for seed in (-3, 0, 1, 10**25)]
    found = {tuple(point.drawn[0] for point in islice(points(space, order), 3)) for order in orders}
    assert len(found) == len(orders)
