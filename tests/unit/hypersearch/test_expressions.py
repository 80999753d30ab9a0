"""Conditions of a sweep, read and asked."""

import pytest

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.hypersearch.expressions import parse_condition
from simple_gpu_scheduler.hypersearch.values import kind_of


def holds(text, **values):
    kinds = {name: kind_of([value]) for name, value in values.items()}
    return parse_condition(text, kinds).holds(values)


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
    with pytest.raises(UserError, match=r"\Athe condition '.*(is wrong: |cannot be evaluated for ).*\Z"):
        holds(text, lr="0.1", opt="sgd\n")
