"""What a word behind `-p NAME` stands for: a literal, numbers that are exact, or a draw that stays in its bounds."""

import math
import re
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.hypersearch.generators import GENERATORS, generate, parse_values
from simple_gpu_scheduler.hypersearch.order import unit
from simple_gpu_scheduler.hypersearch.sweep import WrittenValues
from simple_gpu_scheduler.hypersearch.values import Fixed, is_number, is_whole, parse_fixed, show_fixed

EXACT = Context(prec=120)


def all_of(word: str) -> list[str]:
    return list(parse_values("a", WrittenValues((word,))).choices)


def draws_of(word: str, how_many: int = 2000) -> list[str]:
    """Values, the first two from the smallest and the largest random number that there are."""
    draw = parse_values("a", WrittenValues((word,))).draw
    assert draw
    return [draw(number) for number in (2**-53, 1 - 2**-53, *(unit(1, 0, at) for at in range(how_many)))]


@st.composite
def written_numbers(draw, smallest: int = -(10**9)) -> str:
    """Numbers as people write them: `-12`, `0.250`, `3e-4`."""
    units, decimals = draw(st.integers(smallest, 10**9)), draw(st.integers(0, 9))
    text = show_fixed(units, decimals)
    return draw(st.sampled_from([text, f"{text}e{draw(st.integers(-12, 6))}"]))


EXPECTED = """
range:1:10 = 1 2 3 4 5 6 7 8 9 10
range:0:1:0.1 = 0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0
range:0:1:0.3 = 0.0 0.3 0.6 0.9
range:0:0.5:.25 = 0.00 0.25 0.50
range:10:1:-4 = 10 6 2
range:1e-3:3e-3:1e-3 = 0.001 0.002 0.003
linspace:0:1:5 = 0.0 0.25 0.5 0.75 1.0
linspace:0:0.9:4 = 0.0 0.3 0.6 0.9
linspace:1:-1:3 = 1 0 -1
logspace:1e-5:1e-1:5 = 1e-05 0.0001 0.001 0.01 0.1
logspace:1000:1:4 = 1000 100 10 1
int:-1:2 = -1 0 1 2
"""


@pytest.mark.parametrize("line", EXPECTED.strip().splitlines())
def test_these_words_stand_for_just_these_values(line: str) -> None:
    word, _, values = line.partition(" = ")
    assert all_of(word) == values.split()


@given(first=written_numbers(), step=written_numbers(), gaps=st.integers(0, 30), tenths=st.integers(0, 9))
def test_a_range_is_exact_and_ends_with_the_last_value_that_is_not_beyond_its_end(first, step, gaps, tenths) -> None:
    assume(Fraction(step))
    last = EXACT.fma(Decimal(step), Decimal(gaps) + Decimal(tenths) / 10, Decimal(first))
    values = all_of(f"range:{first}:{last:f}:{step}")
    exact = [Fraction(first) + Fraction(step) * place for place in range(gaps + 1)]
    assert [Fraction(value) for value in values] == exact
    decimals = max(parse_fixed(first).decimals, parse_fixed(step).decimals)
    assert {len(value.partition(".")[2]) for value in values} == {decimals}


@given(first=written_numbers(), last=written_numbers(), count=st.integers(1, 40))
def test_each_value_of_a_linspace_is_the_float_nearest_to_the_exact_one(first, last, count) -> None:
    begin, gap = Fraction(first), (Fraction(last) - Fraction(first)) / max(count - 1, 1)
    exact = [begin + gap * place for place in range(count)]
    values = all_of(f"linspace:{first}:{last}:{count}")
    assert [float(value) for value in values] == [float(value) for value in exact]
    for value, meant in zip(values, exact, strict=True):
        if meant * 10**15 % 1 == 0 and 1e-4 < abs(meant) < 1:  # so many decimals at most are to be seen
            assert Fraction(value) == meant
    are_whole = is_written_whole(first, last) and all(value.denominator == 1 for value in exact)
    assert all(is_whole(value) == are_whole for value in values)


def is_written_whole(*texts: str) -> bool:
    return not any(parse_fixed(text).decimals for text in texts)


@settings(max_examples=60)
@given(first=written_numbers(1), last=written_numbers(1), count=st.integers(1, 12))
def test_each_value_of_a_logspace_is_the_float_nearest_to_the_exact_one(first, last, count) -> None:
    low, high = (EXACT.ln(Decimal(text)) for text in (first, last))
    gaps = max(count - 1, 1)
    weighted = [EXACT.add(EXACT.multiply(low, gaps - k), EXACT.multiply(high, k)) for k in range(count)]
    # Rounded, so that what is exact is 1.000, and not 0.999...
    exact = [Context(prec=100).plus(EXACT.exp(EXACT.divide(one, gaps))) for one in weighted]
    are_whole = is_written_whole(first, last) and all(one == int(one) for one in exact)
    expected = [str(int(one)) if are_whole else repr(float(one)) for one in exact]
    assert all_of(f"logspace:{first}:{last}:{count}") == expected


@pytest.mark.parametrize(
    "line", ["1e23:1e23:1 = 1" + "0" * 23, "464e21:1.5:1 = 4.64e+23", "1e16:2e16:3 = 1e+16 1.414213562373095e+16 2e+16"]
)
def test_a_logspace_beyond_what_floats_can_count_is_as_exact(line: str) -> None:
    word, _, values = line.partition(" = ")
    assert all_of(f"logspace:{word}") == values.split()


def test_a_long_range_is_not_stored_and_may_be_looked_at_anywhere() -> None:
    choices = parse_values("a", WrittenValues(("range:1:1e18",))).choices
    assert [len(choices), int(choices[10**17]), int(choices[10**18 - 1])] == [10**18, 10**17 + 1, 10**18]


UNIFORM = "0:1 -1:1 -3:-2.5 1:1.000000001 1e-9:2e-9 0.1234567890123:0.1234567890124 10:1e17 7:3e40"
LOGUNIFORM = "1e-5:1e-1 1:2 0.5:0.5000001 1:1.000000001 1e-140:1e140 3e-9:4e-9 1e5:1e17 0.1234512345:0.9876545678"


@pytest.mark.parametrize(
    "word", [*(f"uniform:{ends}" for ends in UNIFORM.split()), *(f"loguniform:{ends}" for ends in LOGUNIFORM.split())]
)
def test_draws_stay_within_their_bounds_and_are_even(word: str) -> None:
    low, high = map(Decimal, word.split(":")[1:])
    drawn = [Decimal(value) for value in draws_of(word)]
    assert low <= min(drawn) <= max(drawn) <= high
    if word.startswith("log"):
        assert is_even([float((value / low).ln() / (high / low).ln()) for value in drawn])
    else:
        assert is_even([float((value - low) / (high - low)) for value in drawn])
    assert len(set(drawn)) > 0.85 * len(drawn)


@pytest.mark.parametrize("ends", ["0:1", "5:0.1", "-1e3:1e-6", "0:1e8", "1:3e-9"])
def test_normal_is_a_bell_curve(ends: str) -> None:
    mean, deviation = map(Decimal, ends.split(":"))
    distances = [float((Decimal(value) - mean) / deviation) for value in draws_of(f"normal:{ends}")]
    assert max(map(abs, distances)) < 9
    assert is_even([(1 + math.erf(distance / 2**0.5)) / 2 for distance in distances])


def is_even(numbers: list[float]) -> bool:
    """Whether numbers from 0 to 1 are as many in each twentieth, by chi-square: one in a million is not."""
    bins = [0] * 20
    for number in numbers:
        bins[min(int(number * 20), 19)] += 1
    mean = len(numbers) / 20
    return sum((found - mean) ** 2 / mean for found in bins) < 66


def test_no_drawn_value_shows_more_than_it_means() -> None:
    words = ["uniform:0:1", "uniform:-0.3:0.3", "loguniform:1e-5:1e-1", "loguniform:1:1000", "normal:0.1:0.01"]
    for value in (value for word in words for value in draws_of(word)):
        assert len(re.sub(r"e.*|[-.]", "", value).strip("0")) <= 8, value
        assert "." in value or "e" in value, "it is no whole number"
        assert value != "-0.0"


LITERALS = "host:8080 1:10 -1e-3 range uniform : :1:2 RANGE:1:2 ranges:1:2 range=1:2 http://x:80 nan"


@pytest.mark.parametrize("word", ["", "a range:1:2", " int:1:2", *LITERALS.split()])
def test_anything_else_is_a_literal(word: str) -> None:
    assert generate(word) is None
    assert parse_values("a", WrittenValues((word, "x"))).choices == (word, "x")


def test_a_literal_word_is_no_generator() -> None:
    words = ("range:1:3", "uniform:0:1")
    assert parse_values("a", WrittenValues(words, are_literal=True)).choices == words
    assert parse_values("a", WrittenValues(("0", "range:1:2", "0"))).choices == ("0", "1", "2", "0")


def test_what_a_number_is() -> None:
    assert all(map(is_number, ["1", "-1", "+.5", "5.", "1e5", "1E-05", "00.10"]))
    others = ["", ".", "-", "e5", "1e", "1e1.5", "0x10", "nan", "inf", "1_0", " 1", "1\n", "\u0663", "1,5", "1e1000"]
    assert not any(map(is_number, others))


@given(st.integers(), st.integers(0, 40))
def test_a_number_is_read_as_it_was_written(units, decimals) -> None:
    assert parse_fixed(show_fixed(units, decimals)) == (units, decimals)
    assert Fixed(units, decimals).as_float() == float(Fraction(units, 10**decimals))


HOW_MANY = "the last number is how many values there are; it must be a whole number of 1 or more"
ALONE = "is drawn at random and cannot be combined with other values; leave them out"
MISTAKES = {
    "range takes 2 or 3 numbers, not 1; for example: range:1:10 or range:0:1:0.1": "range: range:1",
    "linspace takes 3 numbers, not 4; for example: linspace:0:1:5": "linspace:0:1:5:2",
    "'' is not a number": "range::2 range:1: uniform:0: linspace:0::5",
    "a step of 0 never reaches the end": "range:1:2:0 range:1:1:0.0",
    "the step never reaches the end; flip its sign": "range:2:1 range:1:2:-1",
    "that is more values than can be counted": "range:1:1e19 range:0:1:1e-18 linspace:0:1:1e19 int:0:1e18",
    "'1e400' is out of the range that programs can read": "range:1:1e400 uniform:0:1e400",
    "'1e-400' is out of the range that programs can read": "range:1e-400:1 normal:0:1e-400",
    HOW_MANY: "linspace:0:1:0 linspace:0:1:2.5 logspace:1:10:-2",
    "both ends must be above 0": "logspace:0:1:5 logspace:1:-1:5 loguniform:0:1 loguniform:-1:1",
    "both ends must be whole numbers; for example: int:1:10": "int:1.5:2 int:1:2.0",
    "the second number must not be below the first": "int:2:1",
    "the second number must be above the first": "uniform:1:1.0 uniform:2:1 loguniform:1:0.1",
    "the second number, the standard deviation, must be above 0": "normal:0:0 normal:0:-1",
    "a: 'range:0:1e5' has more than 100,000 values and cannot be combined with others": "range:0:1e5,x x,range:0:1e5",
    f"a: 'uniform:0:1' {ALONE}": "uniform:0:1,2 2,uniform:0:1",
    f"a: 'int:0:9' {ALONE}": "int:0:9,int:0:9",
    "a value of a contains a NUL byte, which no command can hold": "x\0y",
}
PAIRS = [(words, sentence) for sentence, several in MISTAKES.items() for words in several.split()]


@pytest.mark.parametrize(("words", "sentence"), PAIRS)
def test_each_mistake_has_a_sentence(words: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_values("a", WrittenValues(tuple(words.split(","))))
    assert sentence in str(caught.value)


NUMBERS = written_numbers() | st.sampled_from(["", "0", "1", "-0", "1e9", "x", "1e1000"])


@given(st.sampled_from(sorted(GENERATORS)), st.lists(NUMBERS, min_size=1, max_size=4))
def test_any_numbers_give_values_or_a_sentence(name, numbers) -> None:
    try:
        values = parse_values("a", WrittenValues((":".join([name, *numbers]),)))
    except UserError as error:
        event(str(error))
    else:
        assert is_number(values.draw(0.5) if values.draw else values.choices[0])


WIDE = ["uniform:1e-160:1e160", "uniform:0e-999:1", "loguniform:1e-200:1e200"]


@pytest.mark.parametrize("word", [*WIDE, "normal:1e17:1e-3", "normal:100:1e-20"])
def test_very_wide_and_very_narrow_draws_have_many_values(word: str) -> None:
    assert len(set(draws_of(word))) > 1000


@pytest.mark.parametrize("number", ["1\n", "\x1b[31m", "x" * 3000, "9" * 5000, f"0.{'3' * 5000}", f"{'7' * 4200}e999"])
def test_a_sentence_is_one_short_line_of_ours_whatever_was_typed(number: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_values("a", WrittenValues((f"range:0:{number}",)))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
    assert "set_int_max_str_digits" not in str(caught.value)
