"""Random order and random numbers from a seed: the same on every version of Python. Not for secrets.

The order of n things takes no memory, however large n is. Only this file knows scipy, for quasi-random points."""

import warnings
from math import isqrt

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.extras import install
from simple_gpu_scheduler.base.values import Any, Iterator

_MASK = 2**64 - 1
_FEW = 1024  # up to this many are sorted by random numbers, which makes all orders equally likely


def mix(number: int) -> int:
    """64 bits that look random, by splitmix64: a bijection, so different numbers stay different."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def unit(seed: int, series: int, number: int) -> float:
    """A random number above 0 and below 1: the one with this index in this series."""
    return ((mix(mix(mix(seed & _MASK) ^ series) ^ number) >> 12) + 0.5) * 2**-52


def shuffled(size: int, seed: int) -> Iterator[int]:
    """All the numbers below `size`, each once, in a random order."""
    if size <= _FEW:
        start = mix(seed & _MASK)
        return iter(sorted(range(size), key=lambda number: mix(start ^ number)))
    return _feistel(size, _keys(isqrt(size).bit_length(), seed))


def fold(seed: int) -> int:
    """64 bits of a seed of any size and sign."""
    rest, state = (seed * 2 if seed >= 0 else -seed * 2 - 1), 0
    while rest or not state:
        state = mix(state ^ (rest & _MASK))
        rest >>= 64
    return state


def _keys(bits: int, seed: int) -> list[int]:
    """Odd numbers, large enough that a product with them has something in each of the bits that are used."""
    words = -(-max(64, bits + 8) // 32)
    keys = []
    for number in range(4):
        key = 0
        for word in range(words):
            key = key << 32 | mix(mix(seed & _MASK) ^ (number * words + word)) >> 32
        keys.append(key | 1)
    return keys


def _feistel(size: int, keys: list[int]) -> Iterator[int]:
    """A number is a place in a near square. Each step moves its row by an amount that depends on its column, or the
    column by one that depends on the row.

    Every step can be undone, so no number comes twice. A number beyond the size takes more steps until it is within;
    there are fewer of these than one row has. The squares make it random: without them a step is nearly a straight
    line. The steps are written out because this is the inner loop: calling a function for each would take half as long
    again.
    """
    k1, k2, k3, k4 = keys
    rows = isqrt(size - 1) + 1
    columns = -(-size // rows)
    for number in range(size):
        while True:
            row, column = divmod(number, columns)
            mixed = (column ^ k1) * k2 >> 20
            row = (row + (mixed * mixed >> 32)) % rows
            mixed = (row ^ k2) * k3 >> 20
            column = (column + (mixed * mixed >> 32)) % columns
            mixed = (column ^ k3) * k4 >> 20
            row = (row + (mixed * mixed >> 32)) % rows
            mixed = (row ^ k4) * k1 >> 20
            column = (column + (mixed * mixed >> 32)) % columns
            number = row * columns + column  # noqa: PLW2901 - the next steps start from there
            if number < size:
                break
        yield number


_SMALLEST = 2**-53
_AT_ONCE = 1024
_LARGEST_CUBE = 1_000_000
SAMPLERS = {"sobol": "Sobol", "halton": "Halton", "lhs": "LatinHypercube"}


def quasi_points(sampler: str, dimensions: int, samples: int, seed: int) -> Iterator[list[float]]:
    """Points with numbers above 0 and below 1; a Latin hypercube has exactly `samples`, the others are endless."""
    is_closed = sampler == "lhs"
    if is_closed and samples > _LARGEST_CUBE:
        raise UserError(f"--sampler lhs can draw at most {_LARGEST_CUBE:,} samples, since it draws them all at once")
    engine = _engine(sampler, dimensions, seed)
    while True:
        for point in _quietly(engine, samples if is_closed else min(samples, _AT_ONCE)):
            yield [min(max(number, _SMALLEST), 1 - _SMALLEST) for number in point]
        if is_closed:
            return


def _quietly(engine: Any, samples: int) -> list[list[float]]:
    """Without scipy's warning that Sobol points are balanced best for powers of 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found: list[list[float]] = engine.random(samples).tolist()
    return found


def _engine(sampler: str, dimensions: int, seed: int) -> Any:
    try:
        from scipy.stats import qmc  # noqa: PLC0415 - half a second to load
    except ImportError:
        raise UserError(f"--sampler {sampler} needs scipy; {install('scipy', 'search')}") from None
    try:
        return getattr(qmc, SAMPLERS[sampler])(d=dimensions, rng=seed)
    except TypeError:
        raise UserError(f"--sampler {sampler} needs scipy 1.15 or newer; {install('-U scipy', 'search')}") from None
