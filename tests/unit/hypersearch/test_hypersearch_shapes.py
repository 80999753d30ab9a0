"""Which combinations a sweep has: zips, conditions, repeats, samples, and what is there twice."""

import itertools
import subprocess
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.hypersearch.commands import Sweeps
from simple_gpu_scheduler.hypersearch.expressions import parse_condition
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, SHUFFLED, Sweep, WrittenValues
from simple_gpu_scheduler.hypersearch.values import kind_of
from tests.conftest import HYPERSEARCH


def hypersearch(*args, seconds=60):
    return subprocess.run([*HYPERSEARCH, *args], capture_output=True, text=True, check=False, timeout=seconds)


def in_order(*args):
    done = hypersearch(*args, "--sampling-mode", IN_ORDER)
    return done.stdout.splitlines(), done.stderr


def refusal(*args, seconds=60):
    done = hypersearch(*args, seconds=seconds)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    return done.stderr


def holds(text, **values):
    kinds = {name: kind_of([value]) for name, value in values.items()}
    return parse_condition(text, kinds).holds(values)


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


@settings(max_examples=250, deadline=None)
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


def test_what_is_left_out_is_said() -> None:
    lines, said = in_order("x {a}", "-p", "a", "1", "1", "2", "1")
    assert (lines, "a: '1' is repeated and left out (and 1 more)" in said) == (["x 1", "x 2"], True)
    lines, said = in_order("x {a} {b}", "-p", "a", "1", "2", "1", "-p", "b", "3", "4", "3", "--zip", "b,a")
    assert (lines, "a,b: '1,3' is repeated and left out" in said) == (["x 1 3", "x 2 4"], True)
    lines, said = in_order("x {a:.0f} {i} {n}", "-p", "a", "1.1", "1.2", "2.4")
    assert (lines, "left out 1 repeated line" in said) == (["x 1 1 2", "x 2 2 2"], True)
    lines, said = in_order("x {a}", "-p", "a", "1", "2", "--n-samples", "3")
    assert (lines, "found only 2 different commands of the 3 requested" in said) == (["x 1", "x 2"], True)


def test_counting_takes_no_walk_through_the_grid() -> None:
    million = ["-p", "a", "range:1:100000", "-p", "b", "range:1:100000"]
    assert hypersearch("{a} {b}", *million, "--count", seconds=20).stdout == "10000000000\n"
    assert hypersearch("{a} {b}", *million, "--count", "--n-samples", "7").stdout == "7\n"
    assert hypersearch("{a} {b}", *million, "--where", "a == 5", "--count").stdout == "100000\n"
    assert "which takes too long" in refusal("{a} {b}", *million, "--where", "a < b", "--count")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--zip", "a,b"], "they need the same number of values, but a has 2, b has 3"),
        pytest.param(["--zip", "a,z"], "there is no parameter 'z'"),
        (["--when", "c", "a > 1"], "--when c: there is no parameter 'c'"),
        (["--when", "b", "a > 1"], "write its flag in the same braces"),
        (["--when", "b", "a > 1", "--when", "b", "a > 2"], "--when b is given twice"),
        (["--when", "b", "b > 1"], "b cannot depend on itself"),
        (["--repeat", "2"], "put {seed} in the pattern"),
        (["--where", "a > 9"], "no combination meets the conditions"),
    ],
)
def test_shapes_that_cannot_be_are_named(args, sentence) -> None:
    pattern = "x {a} {--b b}" if sentence.startswith(("b cannot", "--when b is")) else "x {a} {b}"
    assert sentence in refusal(pattern, "-p", "a", "1", "2", "-p", "b", "1", "2", "3", *args)


ALIKE = [["linspace:1:1:3"], ["logspace:2:2:3"], ["linspace:1:1.0000000000000001:4"], ["1", "--repeat", "13"]]


@pytest.mark.parametrize("args", ALIKE)
def test_lines_that_look_alike_are_there_once(args) -> None:
    lines = in_order("x {a}" + " {seed:.0e}" * (len(args) > 1), "-p", "a", *args)[0]
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("d", [["1"], pytest.param(["uniform:0:1", "--n-samples", "9"])])
def test_a_condition_without_an_answer_is_told_before_the_first_line(d) -> None:
    args = ["{a} {d}", "--seed", "1", "-p", "a", "1", "0", "-p", "d", *d, "--where", "1 / a > 0"]
    assert "cannot be evaluated for a=0: division by 0" in refusal(*args)


def test_a_division_asked_of_a_long_range_does_not_walk_through_it() -> None:
    args = ["-p", "a", "range:1:1000000000", "--where", "a % 1000 == 0", "--n-samples", "2"]
    assert len(hypersearch("x {a}", *args, seconds=2).stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "-2 ** 2 == -4", "2 ** 3 ** 2 == 512", "7 // 2 * 2 + 7 % 2 == 7",
        "lr * 3 == 0.3", "lr + 0.2 == 0.3", "1 / 3 * 3 == 1", "-lr < 0", "+lr > 0", "0.05 < lr <= 0.1 < 1 != 2",
        "not 1 < lr < 1 / 0", "lr < 1 or 1 / 0 > 1", "not (lr > 1 and 1 / 0 > 1)", "not lr == 1 and lr == 0.10",
        "lr in (0.1, 2)", "lr not in [1, 2]", "opt in ('sgd', \"adam\")", "opt != 'SGD'", "lr != 'sgd'", "bs == 1e2",
        "(lr < 1) == (opt == 'sgd')", "1 < 2 or lr > 5 and lr > 6", "lr == 1e-1", "lr ** 0.5 < 0.32",
    ],
)  # fmt: skip
def test_conditions_are_read_as_in_arithmetic(text) -> None:
    assert holds(text, lr="0.1", opt="sgd", bs="100")
    assert not holds(f"not ({text})", lr="0.1", opt="sgd", bs="100")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("lr ** 2 == 0.01", {"lr": "0.1"}),
        pytest.param("a == 0.1234567890123456789", {"a": "0.1234567890123456789"}),
        pytest.param("a < 1" + "0" * 400, {"a": "1"}),
        ("a <\n1e999", {"a": "1"}),
        ("(10 ** 300) ** 9 > a", {"a": "1"}),
        pytest.param("a_b < 2", {"a_b": "1", "a-b": "5"}),
        pytest.param("lambda < 1", {"lambda": "0.1"}),
        pytest.param("\N{MICRO SIGN} < 1", {"\N{MICRO SIGN}": "0.1"}),
    ],
)
def test_numbers_and_names_are_those_that_are_written(text, values) -> None:
    assert holds(text, **values)


@pytest.mark.parametrize(
    "text",
    [
        "f(lr) > 1", "__import__('os')", "lr.real > 1", "lr[0] > 1", "(lambda: 1) == 1", "f'{lr}' == 'a'", "lr; lr",
        "[x for x in (1, 2)] == 1", "lr if lr else 1", "lr << 1 > 1", "~1 > 1", "lr @ 2 > 1", "lr is 1", "True", "lr",
        "lr == None", "lr == 1j", "lr == b'a'", "lr == ...", "lr in opt", "lr in {}", "lr == (1, 2)", "await lr", "*lr",
        "yield", "lr = 1", "(x := 1) > 0", "lr > 'a'", "opt > 1", "opt + 1 > 2", "opt * 9 == 'a'", "not lr",
        "lr == '0.1'", "lr > 1e9999", "lr / 0 > 1", "lr % 0 > 1", "lr // 0 > 1", "0 ** -1 > lr", "(-1) ** 0.5 < lr",
        "9 ** 9 ** 9 ** 9 > lr", "lr > 'a", "lr > $", "lr > 1\0", "lr == '\udcff'",
        "(" * 900 + "lr" + ")" * 900 + " > 1", "-" * 1900 + "lr > 1", "not " * 480 + "lr > 1", "lr and 1",
        "lr" + "+1" * 990 + "> 1", "a" * 5000, "1 <" * 10**6 + " lr",
        pytest.param("(lr < 2) in (1, 2)"),
        pytest.param("lr == (1 < 2)"),
        pytest.param("opt == 'a' or 1 / 0 > 1"),
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused_in_one_line(text) -> None:
    start = monotonic()
    with pytest.raises(UserError, match=r"\Athe condition '.*(is wrong: |cannot be evaluated).*\Z"):
        holds(text, lr="0.1", opt="sgd\n")
    assert monotonic() - start < 1
