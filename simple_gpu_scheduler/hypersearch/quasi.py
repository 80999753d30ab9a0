"""Quasi-random points, which fill a space more evenly than random ones. The only place that knows scipy."""

from collections.abc import Iterator
from typing import Any

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.installing import install

_SMALLEST = 2**-53
_AT_ONCE = 1024
_LARGEST_CUBE = 1_000_000
SAMPLERS = {"sobol": "Sobol", "halton": "Halton", "lhs": "LatinHypercube"}


def quasi_points(sampler: str, dimensions: int, samples: int, seed: int) -> Iterator[list[float]]:
    """Points with numbers above 0 and below 1; a Latin hypercube has just so many, the others have no end."""
    is_closed = sampler == "lhs"
    if is_closed and samples > _LARGEST_CUBE:
        raise UserError(f"--sampler lhs makes all its samples at once, and can make {_LARGEST_CUBE:,} at most")
    engine = _engine(sampler, dimensions, seed)
    while True:
        for point in _quietly(engine, samples if is_closed else min(samples, _AT_ONCE)):
            yield [min(max(number, _SMALLEST), 1 - _SMALLEST) for number in point]
        if is_closed:
            return


def _quietly(engine: Any, samples: int) -> list[list[float]]:
    """Without scipy's warning that Sobol's points are balanced best for 2, 4, 8 and so on of them."""
    import warnings  # noqa: PLC0415 - only here

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
