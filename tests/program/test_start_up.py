"""A plain command line is read without click, which takes longer to load than the rest of most commands."""

import subprocess
import sys

import pytest

from tests.conftest import UNMEASURED, Program

OF_CLICK = {"click", "ast", "dis", "gettext", "inspect", "uuid"}
STATUS = ["status", "--json"]
SUBMIT = ["submit", "-q", "--to", "queue", "--", "python", "train.py", "--lr", "0.1"]
SWEEP = ["train {lr}", "-p", "lr", "0.1", "-2", "--sampling-mode", "grid"]
# The program leaves without the interpreter's teardown.
SAYS = """
import os, sys
def leave(code, leave=os._exit):
    with open("loaded", "w") as file:
        print(*sys.modules, file=file)
    leave(code)
os._exit = leave
from simple_gpu_scheduler.cli.main import {0}
{0}()
"""


def loaded(program: Program, args: list[str]) -> set[str]:
    """What a call has loaded when it ends, which it does well."""
    name = "simple_hypersearch" if args[0] == SWEEP[0] else "simple_gpu_scheduler"
    subprocess.run(
        [sys.executable, "-c", SAYS.format(name), *args],
        cwd=program.directory,
        input=b"true\n",
        env=UNMEASURED,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return set((program.directory / "loaded").read_text().split())


@pytest.fixture(autouse=True)
def _a_run_has_ended(program: Program) -> None:
    assert program.run("--gpus", "0", "--logs", "logs", stdin="echo hi\n").returncode == 0
    (program.directory / "queue").touch()


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "args",
    [["--gpus", "0", "--no-journal"], ["--gpus=0", "--retries", "2", "-v"], STATUS, ["logs", "1"], SUBMIT, SWEEP],
    ids=" ".join,
)
def test_a_plain_command_line_loads_no_click(program: Program, args: list[str]) -> None:
    assert loaded(program, args) & OF_CLICK == set()


@pytest.mark.unmeasured
@pytest.mark.parametrize("args", [["--version"], ["status", "--help"], ["history", "-n1"]], ids=" ".join)
def test_click_reads_what_is_not_plain(program: Program, args: list[str]) -> None:
    assert OF_CLICK - loaded(program, args) == set()
