"""Which combinations a sweep has: zips, conditions, repeats, samples, and what is there twice."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.hypersearch.commands import Sweeps
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, SHUFFLED, Sweep, WrittenValues

WHERE = {  # each condition twice: as it is written, and as Python says it
    "a < b": lambda a, b: a < b,
    "a * b + c != 4": lambda a, b, c: a * b + c != 4,
    "d in (1, 3)": lambda d: d in (1, 3),
    "not a == 1 or c > 9": lambda a, c: a != 1 or c > 9,
    "1 <= d < 3": lambda d: 1 <= d < 3,
}
WHEN = {
    "b": {"a == 1": lambda a: a == 1},
    "c": {"a % 2 == 1 and b < 3": lambda a, b: a % 2 == 1 and b < 3},
    "d": {"a > b": lambda a, b: a > b, "c == 9": lambda c: c == 9},
}
NAMES = "abcd"
ZIPS = [(), (), ("ab",), ("db",), ("cad",), ("ab", "dc")]


def answer(is_true, found):
    names = is_true.__code__.co_varnames
    return is_true(*(found[name] for name in names)) if set(names) <= found.keys() else None


@st.composite
def sweeps(draw):
    """A small sweep, and what a nested loop makes of it, in its order."""
    zips = draw(st.sampled_from(ZIPS))
    groups = list(dict.fromkeys(next((group for group in zips if name in group), name) for name in NAMES))
    values = {}
    for group in groups:
        size = draw(st.integers(1, 3))
        values |= {name: draw(st.lists(st.sampled_from("1234"), min_size=size, max_size=size)) for name in group}
    where = draw(st.lists(st.sampled_from(sorted(WHERE)), max_size=2, unique=True))
    away = sorted(draw(st.lists(st.sampled_from("bcd"), max_size=2, unique=True)))  # none asks for one behind it
    when = {name: draw(st.sampled_from(sorted(WHEN[name]))) for name in away}
    repeat = draw(st.sampled_from([None, 1, 2]))
    glue = draw(st.sampled_from([" ", " ", "", ","]))
    flags = {name: f"--{name} " if name in when else "" for name in NAMES}

    lines = []
    for combination in itertools.product(*(zip(*map(values.get, group), strict=True) for group in groups)):
        pairs = zip("".join(groups), itertools.chain.from_iterable(combination), strict=True)
        found = {name: int(value) for name, value in pairs}
        for name, text in when.items():
            if not answer(WHEN[name][text], found):
                del found[name]
        if all(answer(WHERE[text], found) is not False for text in where):
            bits = [f"{glue}{flags[name]}{found[name]}" if name in found else glue.strip() for name in NAMES]
            lines.append("x" + "".join(bits))
    pattern = "x" + "".join(f"{glue}{{{flags[name]}{name}}}" for name in NAMES) + " {seed}" * (repeat is not None)
    sweep = Sweep(pattern, {name: WrittenValues(tuple(values[name])) for name in NAMES}, where=tuple(where), when=when)
    order = draw(st.sampled_from([IN_ORDER, SHUFFLED]))
    sweep = sweep._replace(
        zips=tuple(map(tuple, zips)), repeat=repeat, sampling_mode=order, seed=draw(st.integers(0, 9))
    )
    return sweep, list(dict.fromkeys(lines))


def repeated(lines, repeat):
    return lines if repeat is None else [f"{line} {seed}" for seed in range(repeat) for line in lines]


def made(*several):
    """The lines; each of {i} and {n} is right, and so is what --count says."""
    prepared = Sweeps([one._replace(pattern=one.pattern + " {i}/{n}") for one in several])
    count = Sweeps(several).total
    if not count:
        with pytest.raises(UserError, match="no combination meets the conditions"):
            next(prepared.lines())
        return []
    bare = list(Sweeps(several).lines())
    assert list(prepared.lines()) == [f"{line} {number}/{count}" for number, line in enumerate(bare, 1)]
    assert len(bare) == count
    return bare


@settings(max_examples=120, deadline=None)
@given(sweeps(), st.one_of(st.none(), st.integers(1, 12)))
def test_a_sweep_is_what_nested_loops_make_of_it(made_up, samples) -> None:
    sweep, expected = made_up
    lines = made(sweep._replace(samples=samples))
    if sweep.sampling_mode == IN_ORDER:
        assert lines == repeated(expected[:samples], sweep.repeat)
    assert len(set(lines)) == len(lines) == len(expected[:samples]) * (sweep.repeat or 1)
    assert set(lines) <= set(repeated(expected, sweep.repeat))
    if sweep.repeat:  # each time the same, in the same order
        assert lines == repeated([line[:-2] for line in lines[: len(lines) // sweep.repeat]], sweep.repeat)


@settings(max_examples=40, deadline=None)
@given(st.lists(sweeps(), min_size=2, max_size=3))
def test_several_sweeps_come_one_after_another_and_no_line_twice(several) -> None:
    blocks = [repeated(expected, sweep.repeat) for sweep, expected in several]
    in_turn = [sweep._replace(sampling_mode=IN_ORDER) for sweep, _ in several]
    assert made(*in_turn) == list(dict.fromkeys(itertools.chain(*blocks)))
    assert sorted(made(*(sweep for sweep, _ in several))) == sorted(set(itertools.chain(*blocks)))
