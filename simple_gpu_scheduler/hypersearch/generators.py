"""The words after `-p NAME` and their values: listed, or computed by a generator."""

from math import exp, floor, log, log10

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Callable, Mapping, NamedTuple

from .sweep import WrittenValues, shown
from .values import LISTED, MOST, Computed, Draw, Fixed, Values, is_number, parse_fixed, show_fixed

_PARTS = 10**5  # at least this many values differ
_DIGITS = 6
_SMALLEST = 1e-17


def uniform(low: Fixed, high: Fixed) -> Draw:
    """Each number between the two as likely as any other."""
    _check_order(low, high)
    decimals = max(low.decimals, high.decimals, 1)
    while high.scaled(decimals) - low.scaled(decimals) < _PARTS:
        decimals += 1
    start, parts = low.scaled(decimals), high.scaled(decimals) - low.scaled(decimals)
    return lambda number: _bare(show_fixed(start + (int(number * 2**53) * (parts + 1) >> 53), decimals))


def loguniform(low: Fixed, high: Fixed) -> Draw:
    """Each order of magnitude as likely as any other."""
    _check_order(low, high)
    if low.units <= 0:
        raise ValueError("both ends must be above 0")
    first, last = low.as_float(), high.as_float()
    start, width = log(first), log(last) - log(first)
    digits = min(17, _DIGITS + max(0, -floor(log10(max(width, _SMALLEST)))))
    return lambda number: repr(min(max(float(f"{exp(start + width * number):.{digits}g}"), first), last))


def normal(mean: Fixed, deviation: Fixed) -> Draw:
    """The bell curve."""
    from statistics import NormalDist  # noqa: PLC0415 - few need it

    if deviation.units <= 0:
        raise ValueError("the second number, the standard deviation, must be above 0")
    decimals = max(1, mean.decimals, _DIGITS - 1 - floor(log10(deviation.as_float())))
    bell, middle = NormalDist(0, deviation.as_float()), mean.scaled(decimals)

    def draw(number: float) -> str:
        return _bare(show_fixed(middle + parse_fixed(f"{bell.inv_cdf(number):.{decimals}f}").units, decimals))

    return draw


def _bare(text: str) -> str:
    """Without trailing zeros, but with one decimal left: it is not a whole number."""
    bare = text.rstrip("0")
    return f"{bare}0" if bare.endswith(".") else bare


def _check_order(low: Fixed, high: Fixed) -> None:
    scale = max(low.decimals, high.decimals)
    if low.scaled(scale) >= high.scaled(scale):
        raise ValueError("the second number must be above the first")


_FEW = 1000
_EXACT = 10**30  # below it, all digits of a whole number are right
_ONE = Fixed(1, 0)


def _range(first: Fixed, last: Fixed, step: Fixed = _ONE) -> Values:
    decimals = max(first.decimals, step.decimals)
    scale = max(decimals, last.decimals)
    span, each = last.scaled(scale) - first.scaled(scale), step.scaled(scale)
    if not each:
        raise ValueError("a step of 0 never reaches the end")
    if span * each < 0:
        raise ValueError("the step never reaches the end; flip its sign")
    start, by = first.scaled(decimals), step.scaled(decimals)
    return _computed(span // each + 1, lambda place: show_fixed(start + by * place, decimals))


def _linspace(first: Fixed, last: Fixed, count: Fixed) -> Values:
    number = _number(count)
    scale = max(first.decimals, last.decimals)
    start, end, gaps = first.scaled(scale), last.scaled(scale), max(number - 1, 1)
    if scale == 0 and (end - start) % gaps == 0:
        return _spaced(number, lambda place: str(start + (end - start) // gaps * place))
    below = gaps * 10**scale
    return _spaced(number, lambda place: repr((start * (gaps - place) + end * place) / below))


def _logspace(first: Fixed, last: Fixed, count: Fixed) -> Values:
    from decimal import Context, Decimal  # noqa: PLC0415 - it takes longer to load than most sweeps to print

    number = _number(count)
    if min(first.units, last.units) <= 0:
        raise ValueError("both ends must be above 0; they are values, not exponents")
    # Far more precise than a float, so that 0.0001 comes out exactly so with any C library.
    fine, coarse = Context(prec=60), Context(prec=50)
    low, high = (fine.ln(fine.create_decimal(show_fixed(*end))) for end in (first, last))
    gaps = max(number - 1, 1)

    def at(place: int) -> Decimal:
        weighted = fine.fma(high, place, fine.multiply(low, gaps - place))
        return coarse.plus(fine.exp(fine.divide(weighted, gaps)))

    def is_whole(value: Decimal) -> bool:
        return value < _EXACT and value == int(value)

    if first.decimals == last.decimals == 0 and number <= _FEW and all(is_whole(at(place)) for place in range(number)):
        return _spaced(number, lambda place: str(int(at(place))))
    return _spaced(number, lambda place: repr(float(at(place))))


def _spaced(size: int, at: Callable[[int], str]) -> Values:
    """A few are listed, so that repetitions are found; of many, neighbours are closest at one of the two ends."""
    if size <= _FEW:
        return Values(tuple(at(place) for place in range(size)))
    values = _computed(size, at)
    if at(0) == at(1) or at(size - 2) == at(size - 1):
        raise ValueError("there are too few different numbers between the two ends")
    return values


def _int(first: Fixed, last: Fixed) -> Values:
    if first.decimals or last.decimals:
        raise ValueError("both ends must be whole numbers")
    if first.units > last.units:
        raise ValueError("the second number must not be below the first")
    return _range(first, last)._replace(needs_samples=True)


def _number(count: Fixed) -> int:
    if count.decimals or count.units < 1:
        raise ValueError("the last number is how many values there are; it must be a whole number of 1 or more")
    return count.units


def _computed(size: int, at: Callable[[int], str]) -> Values:
    if size > MOST:
        raise ValueError("that is more values than can be counted")
    return Values(Computed(size, at))


def _drawn(make: Callable[[Fixed, Fixed], Draw]) -> Callable[..., Values]:
    return lambda first, second: Values(draw=make(first, second), needs_samples=True)


class Generator(NamedTuple):
    """How to make values from the numbers after its name, how many numbers it takes, and an example."""

    make: Callable[..., Values]
    counts: tuple[int, ...]
    example: str


GENERATORS: Mapping[str, Generator] = {
    "range": Generator(_range, (2, 3), "range:1:10 or range:0:1:0.1"),
    "linspace": Generator(_linspace, (3,), "linspace:0:1:5"),
    "logspace": Generator(_logspace, (3,), "logspace:1e-5:1e-1:5"),
    "uniform": Generator(_drawn(uniform), (2,), "uniform:0:1"),
    "loguniform": Generator(_drawn(loguniform), (2,), "loguniform:1e-5:1e-1"),
    "int": Generator(_int, (2,), "int:1:10"),
    "normal": Generator(_drawn(normal), (2,), "normal:0:1"),
}


def _parse(text: str) -> Fixed:
    number = parse_fixed(text)
    if number.units and not number.is_common():
        raise ValueError(f"{shown(text)} is out of the range that programs can read")
    return number


def _numbers(texts: list[str], name: str, counts: tuple[int, ...]) -> list[Fixed]:
    if len(texts) not in counts:
        raise ValueError(f"{name} takes {' or '.join(map(str, counts))} numbers, not {len(texts)}")
    return [_parse(text) for text in texts]


def generate(word: str) -> Values | None:
    """The values that the word stands for, None if it is literal; a ValueError says what is wrong with it."""
    name, colon, rest = word.partition(":")
    generator = GENERATORS.get(name) if colon else None
    if not generator:
        return None
    try:
        return generator.make(*_numbers(rest.split(":"), name, generator.counts))
    except ValueError as error:
        raise ValueError(f"{error}; for example: {generator.example}") from None


def parse_values(name: str, written: WrittenValues) -> Values:
    """The values of the words. Repeated values stay."""
    words = written.words
    if not words:
        raise UserError(f"the parameter {name} has no values; write -p {name} VALUE...")
    if any("\0" in word for word in words):
        raise UserError(f"a value of {name} contains a NUL byte, which no command can hold")
    parts = [Values((word,)) if written.are_literal else _parse_word(name, word) for word in words]
    if len(parts) == 1:
        return parts[0]
    for word, part in zip(words, parts, strict=True):
        if part.needs_samples:
            raise UserError(
                f"{name}: {shown(word)} is drawn at random and cannot be combined with other values; leave them out"
            )
        if len(part.choices) > LISTED:
            raise UserError(f"{name}: {shown(word)} has more than {LISTED:,} values and cannot be combined with others")
    return Values(tuple(value for part in parts for value in part.choices))


def _parse_word(name: str, word: str) -> Values:
    try:
        return generate(word) or Values((word,))
    except ValueError as error:
        raise UserError(f"{name}: {shown(word)}: {error} (or -p {name}=VALUE for a literal value)") from None


def doubts(name: str, written: WrittenValues) -> list[str]:
    """Notes on words that look like mistakes."""
    if written.are_literal:
        return []
    found = [_doubt(word) for word in written.words]
    if len(written.words) == 1 and "," in written.words[0] and all(map(is_number, written.words[0].split(","))):
        found.append(f"{shown(written.words[0])} is a single value; separate several with spaces")
    return [f"{name}: {doubt}" for doubt in found if doubt]


def _doubt(word: str) -> str:
    first, *numbers = word.split(":")
    close = [word] if word in GENERATORS else []
    if first not in GENERATORS and len(numbers) > 1 and not is_number(first) and all(map(is_number, numbers)):
        from difflib import get_close_matches  # noqa: PLC0415 - few words come so far

        close = get_close_matches(first, GENERATORS, n=1)
    return f"{shown(word)} is taken literally; did you mean {GENERATORS[close[0]].example}?" if close else ""
