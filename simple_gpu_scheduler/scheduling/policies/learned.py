"""The `learned` policy: a score whose weights were found in the simulator, and their text in a file.

It knows neither how weights are found nor where the file is, and needs no NumPy. Pure.
"""

import json
from math import isfinite, log
from operator import mul

from simple_gpu_scheduler.base.values import NamedTuple

from .base import Load, WaitingJob
from .scored import LEAST, Scored

# The weight of length, wait or width: a constant, and factors for the number of waiting jobs and for the load.
Slope = tuple[float, ...]
SIZE = 3

VERSION = 1
_KIND = "linear"
_MOST_CHARACTERS = 100_000
_LARGEST = 1e6  # no sum of products overflows
_NONE = (0.0, 0.0, 0.0)
# Scales the logarithms of seconds, from one to weeks, and of counts to about one.
_SECONDS = 1 / 7
_COUNT = 1 / 3

# More than that of `hrrn`, so that among narrow jobs the order is that of `sjf` unless a job waits for very long.
_PATIENCE = 1000.0


class Weights(NamedTuple):
    """Of the score. The number of waiting jobs and the load are the same for all jobs, so alone they order nothing.

    With the defaults only the length counts: the order of `sjf`.
    """

    length: Slope = (-1.0, 0.0, 0.0)
    wait: Slope = _NONE
    gpus: Slope = _NONE


def parse_weights(text: str) -> Weights:
    """Parse the text of a weights file. A ValueError says what is wrong with it in one sentence."""
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"it has more than {_MOST_CHARACTERS:,} characters, so it is not a weights file")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON, so it is not a weights file") from None
    if not isinstance(record, dict) or "version" not in record:
        raise ValueError('it has no "version", so it is not a weights file')
    if type(record["version"]) is not int or record["version"] != VERSION:
        raise ValueError(f"its version is not {VERSION}, the only one supported here; learn the weights again")
    if record.get("kind") != _KIND:
        raise ValueError(f'its "kind" is not "{_KIND}", the only one supported here')
    names = {"version", "kind", *Weights._fields}
    if missing := sorted(names - record.keys()):
        raise ValueError(f'it has no "{missing[0]}", so it is not a weights file')
    if record.keys() - names:
        raise ValueError(f"it has keys other than {', '.join(sorted(names))}")
    return Weights(*(_slope(record[name], name) for name in Weights._fields))


def show_weights(weights: Weights) -> str:
    """The text for a file: the same for the same weights."""
    rows = [f'"version": {VERSION}', f'"kind": "{_KIND}"']
    rows += [f'"{name}": {json.dumps(slope)}' for name, slope in weights._asdict().items()]
    return "{\n  " + ",\n  ".join(rows) + "\n}\n"


class Learned(Scored):
    """The largest learned score first; within a queue, the job whose patience ends first, nearly always the shortest.

    So when any job of a queue has been passed over for too long, the first one has.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__(_Linear(weights), _PATIENCE)
        self.rank = lambda _job, since, length: since + _PATIENCE * (length or LEAST)


class _Linear:
    """The score. The parts that all waiting jobs share are computed once per decision."""

    __slots__ = ("_gpus", "_length", "_load", "_wait", "_weights")

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._load: Load | None = None
        self._length = self._wait = self._gpus = 0.0

    def __call__(self, waiting: WaitingJob, now: float, load: Load) -> float:
        if load is not self._load:
            self._prepare(load)
        score = self._length * log(waiting.length + 1.0)
        if self._wait and waiting.since < now:
            score += self._wait * log(now - waiting.since + 1.0)
        if waiting.kind[0] > 1:
            score += self._gpus * log(waiting.kind[0])
        return score

    def _prepare(self, load: Load) -> None:
        self._load = load
        in_use, count = load
        factors = (1.0, _COUNT * log(count + 1.0), in_use)
        self._length, self._wait, self._gpus = (
            scale * sum(map(mul, slope, factors))
            for slope, scale in zip(self._weights, (_SECONDS, _SECONDS, _COUNT), strict=True)
        )


def _slope(value: object, name: str) -> Slope:
    if not isinstance(value, list) or len(value) != SIZE:
        raise ValueError(f'its "{name}" is not a list of {SIZE} numbers')
    numbers = [_number(each) for each in value]
    if not all(isfinite(number) and abs(number) <= _LARGEST for number in numbers):
        raise ValueError(f'its "{name}" holds something other than numbers from -{_LARGEST:,.0f} to {_LARGEST:,.0f}')
    return tuple(numbers)


def _number(value: object) -> float:
    """The number, or one that is not finite if the value is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf")
