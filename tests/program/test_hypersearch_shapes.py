"""The shapes of a sweep, as simple_hypersearch prints them."""

import subprocess

import pytest

from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER
from tests.conftest import HYPERSEARCH


def hypersearch(*args):
    return subprocess.run([*HYPERSEARCH, *args], capture_output=True, text=True, check=False, timeout=120)


def in_order(*args):
    done = hypersearch(*args, "--sampling-mode", IN_ORDER)
    return done.stdout.splitlines(), done.stderr


def refusal(*args):
    done = hypersearch(*args)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    return done.stderr


def test_what_is_left_out_is_reported() -> None:
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
    assert hypersearch("{a} {b}", *million, "--count").stdout == "10000000000\n"
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
def test_a_condition_without_an_answer_is_reported_before_the_first_line(d) -> None:
    args = ["{a} {d}", "--seed", "1", "-p", "a", "1", "0", "-p", "d", *d, "--where", "1 / a > 0"]
    assert "cannot be evaluated for a=0: division by 0" in refusal(*args)


def test_a_division_asked_of_a_long_range_does_not_walk_through_it() -> None:
    args = ["-p", "a", "range:1:1000000000", "--where", "a % 1000 == 0", "--n-samples", "2"]
    assert len(hypersearch("x {a}", *args).stdout.splitlines()) == 2
