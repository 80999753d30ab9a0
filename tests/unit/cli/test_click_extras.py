"""Options with several values, as people type them."""

import click
import pytest
from click.shell_completion import ShellComplete
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.cli import call as calls
from simple_gpu_scheduler.cli.call import call
from simple_gpu_scheduler.cli.click_extras import join_values, read_by_click
from simple_gpu_scheduler.cli.commands import COMMANDS, load
from simple_gpu_scheduler.cli.declarations import Argument, Command, CommandLine, Defaults, Option
from simple_gpu_scheduler.cli.group import main
from simple_gpu_scheduler.engines import ENGINES
from simple_gpu_scheduler.gpus.names import looks_like_gpus

OPTIONS = [
    Option(["--gpus", "-g"], "", multiple=True, takes=looks_like_gpus, example="--gpus 0 1", metavar="GPU..."),
    Option(["-v", "verbose"], "", is_flag=True),
    Option(["--policy"], ""),
]
COMMAND = Command("x", dict, help="", examples="", argument=Argument("files"), others=OPTIONS)


def parsed(*args: str) -> dict[str, object]:
    line = read_by_click(COMMAND, args, "x", Defaults())
    assert isinstance(line, CommandLine)
    return line.values


@pytest.mark.parametrize(
    ("args", "gpus", "rest"),
    [
        ("--gpus 0 1 2", ["0", "1", "2"], {}),
        ("--gpus 0,1,2", ["0,1,2"], {}),
        ("--gpus 0-3", ["0-3"], {}),
        ("--gpus=0,1", ["0,1"], {}),
        ("--gpus=0 1", ["0", "1"], {}),
        ("--gpus 0 1 -v", ["0", "1"], {"verbose": True}),
        ("--gpus 0 1 --policy fifo", ["0", "1"], {"policy": "fifo"}),
        ("--gpus 0 1 cmds.txt", ["0", "1"], {"files": ("cmds.txt",)}),
        ("cmds.txt --gpus 0 more.txt", ["0"], {"files": ("cmds.txt", "more.txt")}),
        ("--gpus 0 -- 1 2", ["0"], {"files": ("1", "2")}),
        ("-- --gpus 0", [], {"files": ("--gpus", "0")}),
        ("--gpus GPU-1a 2 ./3", ["GPU-1a", "2"], {"files": ("./3",)}),
        ("", [], {}),
    ],
)
def test_it_takes_what_looks_like_its_values_and_no_more(args: str, gpus: list[str], rest: dict[str, object]) -> None:
    expected = {"gpus": (tuple(gpus),) if gpus else (), "verbose": False, "policy": None, "files": ()} | rest
    assert parsed(*args.split()) == expected


def test_it_may_be_given_several_times() -> None:
    assert parsed("--gpus", "0", "--gpus", "1", "2")["gpus"] == (("0",), ("1", "2"))


def test_the_error_of_an_option_without_its_value_names_the_help_of_its_command() -> None:
    with pytest.raises(UserError, match=r"'--html' requires an argument \(see sgs report --help\)"):
        call(load("report"), ["--html"], "sgs report")


@pytest.mark.parametrize(
    ("args", "found"),
    [(["--gpus"], ""), (["--gpus", "-v"], ""), (["--gpus", "x"], ", not 'x'")],
)
def test_none_of_its_values_is_a_clear_error(args: list[str], found: str) -> None:
    with pytest.raises(UserError) as error:
        parsed(*args)
    assert str(error.value) == f"--gpus must be followed by GPU...{found}; for example: --gpus 0 1 (see x --help)"


WORDS = st.lists(st.sampled_from(["--gpus", "-g", "--gpus=1", "0", "1", "x", "-v", "--", "--policy"]))


@given(WORDS)
def test_no_word_that_is_not_its_own_is_touched(args: list[str]) -> None:
    try:
        joined = join_values(args, COMMAND)
    except click.UsageError:
        return
    words = [word for arg in joined for word in arg.split("\0")]
    flat = [word for arg in args for word in (arg.split("=") if arg == "--gpus=1" and "--" not in args else [arg])]
    assert [word for word in words if word not in ("--gpus", "-g")] == [
        word for word in flat if word not in ("--gpus", "-g")
    ] or "--" in args


def test_a_command_is_called_by_its_name_and_the_run_by_none(monkeypatch) -> None:
    called: list[tuple[str, ...]] = []

    def load(name: str) -> Command:
        return COMMAND._replace(name=name, callback=lambda files, **_: called.append((name, *files)))

    monkeypatch.setattr(calls, "load", load)
    for args in (["status", "now"], ["./status"], ["now", "status"], []):
        calls.call_by_name(args, None)
    assert called == [("status", "now"), ("", "./status"), ("", "now", "status"), ("",)]


def test_each_command_of_the_table_is_there() -> None:
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command
        assert command.name == name
    assert main.get_command(context, "none") is None


def test_completion_offers_commands_as_the_first_word_and_the_values_of_options() -> None:
    def offered(words: list[str], begin: str) -> list[str]:
        found = ShellComplete(main, {}, "simple_gpu_scheduler", "_COMPLETE").get_completions(words, begin)
        return [item.value for item in found if item.type == "plain"]

    assert offered([], "st") == ["status", "stop"]
    assert offered(["jobs.txt"], "st") == []
    assert offered([], "gpu_commands") == []
    assert offered(["--engine"], "") == list(ENGINES)
    assert offered(["--policy"], "f") == ["fifo", "fair"]
