"""What varies among commands that do the same."""

import pytest

from simple_gpu_scheduler.report.parameters import find_parameters


@pytest.mark.parametrize(
    ("commands", "values"),
    [
        (("t --lr 0.1", "t --lr 1e-3"), ({"lr": "0.1"}, {"lr": "1e-3"})),
        (("t --lr=0.1 -b 32", "t --lr=-1 -b 32"), ({"lr": "0.1"}, {"lr": "-1"})),
        (("t -b 32 --x -0.5", "t -b 64 --x -1"), ({"b": "32", "x": "-0.5"}, {"b": "64", "x": "-1"})),
        (("t lr=0.1 +m.opt=a", "t lr=0.2 +m.opt=b"), ({"lr": "0.1", "m.opt": "a"}, {"lr": "0.2", "m.opt": "b"})),
        (("LR=0.1 t", "LR=0.2 t"), ({"LR": "0.1"}, {"LR": "0.2"})),
        (("t 1 5 'a b'", "t 2 5 'c'"), ({"#1": "1", "#2": "a b"}, {"#1": "2", "#2": "c"})),
        (("t --opt adam", "t --opt sgd"), ({"opt": "adam"}, {"opt": "sgd"})),
        (("t --amp", "t"), ({"amp": "yes"}, {})),
        (("t --name 'it'\"'\"'s'", 't --name "x"'), ({"name": "it's"}, {"name": "x"})),
        (("t --s 1 > o/1 2>&1", "t --s 2 > o/2 2>&1"), ({"s": "1"}, {"s": "2"})),
        (("t --s 1; echo", "t --s 2; echo"), ({"s": "1"}, {"s": "2"})),
        (("t --x 1 --x 2", "t --x 1 --x 3"), ({"x": "1 2"}, {"x": "1 3"})),
        (("t --lr 0.1", "t --lr 0.1"), ({}, {})),
        (("t --lr 0.1", "other --lr 0.2"), ({}, {})),
        (("t 'unclosed --lr 0.1", "t 'unclosed --lr 0.2"), ({"lr": "0.1"}, {"lr": "0.2"})),
    ],
)  # fmt: skip
def test_what_varies_among_commands_that_do_the_same_is_a_parameter(commands, values) -> None:
    found = find_parameters(commands)
    assert tuple(found.values) == values
    assert list(found.names) == list(dict.fromkeys(name for each in values for name in each))


def test_what_a_shell_takes_for_a_quote_is_a_quote_in_a_value() -> None:
    found = find_parameters([r'run --cfg "{\"lr\": 1, \"t\": \"\t\"}"', "run --cfg 'a\\\"b'"])
    assert [values["cfg"] for values in found.values] == [r'{"lr": 1, "t": "\t"}', 'a\\"b']
