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


def axes(*words: str) -> list[str]:
    """The axes of a grid of six, whose commands end in these words; `{i}` is distinct in every job."""
    grid = [("--lr 0.1", "--bs 32"), ("--lr 0.2", "--bs 32"), ("--lr 0.1", "--bs 64")]
    commands = [" ".join(["t", *grid[i % 3], *words]).format(i=i) for i in range(6)]
    return list(find_parameters(commands).axes)


@pytest.mark.parametrize(
    "words",
    [
        "--output runs/{i}.json",
        "--output=runs/{i}.json",
        "out=runs/{i}",
        "--name exp{i}",
        "'a job of {i}' x",
        "-o {i}.pt",
    ],
)
def test_an_option_that_is_distinct_in_every_job_is_no_axis(words: str) -> None:
    assert axes(words) == ["lr", "bs"]


def test_what_is_no_axis_is_a_parameter() -> None:
    found = find_parameters([f"t --lr {i % 2} --output runs/{i}.json" for i in range(6)])
    assert (found.names, found.axes) == (("lr", "output"), ("lr",))
    assert [values["output"] for values in found.values] == [f"runs/{i}.json" for i in range(6)]


def test_a_path_that_is_distinct_in_each_of_a_few_jobs_is_no_axis() -> None:
    assert find_parameters([f"t --lr 0.{i} -o runs/{i}.json" for i in range(3)]).axes == ("lr",)


@pytest.mark.parametrize(
    "commands",
    [
        [f"t --bs {i % 2} --lr {0.1 / (i + 1)}" for i in range(50)],
        [f"t --bs {len(opt)} --lr {opt}" for opt in ("adam", "sgd", "lamb")],
        ["t --bs 1 --lr a/1", "t --bs 2 --lr a/2"],
        [f"t --bs {i % 2} --lr a/{i % 9}" for i in range(10)],
        [f"t --bs {i % 2}" + f" --lr a/{i}" * (i > 0) for i in range(10)],
    ],
    ids=["numbers", "a few words", "two jobs", "one value twice", "not in every job"],
)  # fmt: skip
def test_what_may_tell_something_about_the_results_is_an_axis(commands: list[str]) -> None:
    assert find_parameters(commands).axes[-1] == "lr"


def test_if_nothing_else_varies_it_is_the_axis() -> None:
    assert find_parameters([f"eval --model runs/{i}.pt -o {i}.json" for i in range(9)]).axes == ("model",)
