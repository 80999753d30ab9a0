"""Options with several values, as people type them."""

import click
import pytest
from click.shell_completion import ShellComplete
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.cli.click_extras import Command, SeveralValues, join_values
from simple_gpu_scheduler.cli.commands import COMMANDS
from simple_gpu_scheduler.cli.group import DefaultGroup, main
from simple_gpu_scheduler.engines import ENGINES
from simple_gpu_scheduler.gpus.names import looks_like_gpus

GPUS = SeveralValues(["-g", "--gpus"], takes=looks_like_gpus, example="--gpus 0")


def parsed(*args: str) -> dict[str, object]:
    params = [
        SeveralValues(["--gpus"], takes=looks_like_gpus, example="--gpus 0 1", metavar="GPU..."),
        click.Option(["-v", "verbose"], is_flag=True),
        click.Option(["--policy"]),
        click.Argument(["files"], nargs=-1),
    ]
    command = Command("x", *params, callback=lambda **values: values, examples="")
    return command.main(args=list(args), standalone_mode=False)


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
    with pytest.raises(click.UsageError, match="'--html' requires an argument") as raised:
        main.main(["report", "--html"], prog_name="sgs", standalone_mode=False)
    assert raised.value.ctx
    assert raised.value.ctx.command_path == "sgs report"


@pytest.mark.parametrize(
    ("args", "found"),
    [(["--gpus"], ""), (["--gpus", "-v"], ""), (["--gpus", "x"], ", not 'x'")],
)
def test_none_of_its_values_is_a_clear_error(args: list[str], found: str) -> None:
    with pytest.raises(click.UsageError) as error:
        parsed(*args)
    assert error.value.message == f"--gpus must be followed by GPU...{found}; for example: --gpus 0 1"


WORDS = st.lists(st.sampled_from(["--gpus", "-g", "--gpus=1", "0", "1", "x", "-v", "--", "--policy"]))


@given(WORDS)
def test_no_word_that_is_not_its_own_is_touched(args: list[str]) -> None:
    try:
        joined = join_values(args, [GPUS])
    except click.UsageError:
        return
    words = [word for arg in joined for word in arg.split("\0")]
    flat = [word for arg in args for word in (arg.split("=") if arg == "--gpus=1" and "--" not in args else [arg])]
    assert [word for word in words if word not in ("--gpus", "-g")] == [
        word for word in flat if word not in ("--gpus", "-g")
    ] or "--" in args


def test_a_command_of_the_group_is_called_by_its_name_and_the_run_by_none(monkeypatch) -> None:
    called: list[tuple[str, ...]] = []
    words = click.Argument(["words"], nargs=-1)
    status = click.Command("status", callback=lambda words: called.append(("status", *words)), params=[words])
    default = click.Command("", callback=lambda words: called.append(("default", *words)), params=[words])
    monkeypatch.setattr(DefaultGroup, "get_command", lambda _self, _ctx, name: {"status": status, "": default}[name])
    for args in (["status", "now"], ["./status"], ["now", "status"], []):
        main.main(args=args, standalone_mode=False)
    assert called == [("status", "now"), ("default", "./status"), ("default", "now", "status"), ("default",)]


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
