"""The points of a space one after another: in grid order, shuffled, random, or quasi-random."""

from itertools import count

from simple_gpu_scheduler.base.values import Iterator, NamedTuple

from .order import mix, quasi_points, shuffled, unit
from .space import Space


class Point(NamedTuple):
    """A place in each factor, and the drawn values."""

    places: list[int]
    drawn: list[str]


class Order(NamedTuple):
    """How a space is visited: by default from the first point to the last."""

    is_shuffled: bool = False
    sampler: str = ""
    samples: int = 1  # as many as a sampler makes
    seed: int = 0


def points(space: Space, order: Order) -> Iterator[Point]:
    """Endless if something is drawn; else each point once."""
    if order.sampler:
        return _quasi(space, order)
    if space.draws:
        return _drawn(space, order)
    return (Point(_places(space, index), []) for index in indexes(space, order))


def indexes(space: Space, order: Order, round_number: int = 0) -> Iterator[int]:
    """The points as numbers; each round has its own order."""
    size = space.size
    if not order.is_shuffled:
        return iter(range(size))
    return shuffled(size, mix(mix(order.seed) ^ round_number) if round_number else order.seed)


def _places(space: Space, index: int) -> list[int]:
    """The place in each factor; the last one changes fastest."""
    places = []
    for factor in reversed(space.factors):
        index, place = divmod(index, factor.size)
        places.append(place)
    places.reverse()
    return places


def _drawn(space: Space, order: Order) -> Iterator[Point]:
    """Round by round, so that all combinations of the listed values come equally often."""
    number = count()
    for round_number in count():
        for index in indexes(space, order, round_number):
            at = next(number)
            drawn = [draw(unit(order.seed, series, at)) for series, (_, draw) in enumerate(space.draws)]
            yield Point(_places(space, index), drawn)


def _quasi(space: Space, order: Order) -> Iterator[Point]:
    factors, draws = space.factors, space.draws
    for numbers in quasi_points(order.sampler, len(factors) + len(draws), order.samples, order.seed % 2**64):
        places = [int(number * factor.size) for number, factor in zip(numbers, factors, strict=False)]
        drawn = [draw(number) for number, (_, draw) in zip(numbers[len(factors) :], draws, strict=True)]
        yield Point(places, drawn)
