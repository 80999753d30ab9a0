"""Each example of the README does what it shows, in a shell, command by command."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.nvml import StandIn

Step = tuple[str, list[str]]

COMMANDS = [
    ["simple_gpu_scheduler"],
    ["simple_gpu_scheduler", "run"],
    ["simple_gpu_scheduler", "gpus"],
    *(
        ["simple_gpu_scheduler", name]
        for name in (
            *(
                "status",
                "stop",
                "pause",
                "continue",
                "cancel",
                "retry",
                "logs",
                "wait",
                "history",
                "report",
                "submit",
                "simulate",
                "tune",
            ),
        )
    ),
    ["simple_hypersearch"],
]


def examples() -> list[list[Step]]:
    """The console blocks: each command with the lines that it shows."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    found = []
    for block in blocks:
        steps: list[Step] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        found.append(steps)
    return found


def comparable(lines: list[str]) -> list[str]:
    """Without what differs from run to run: times, which GPU was free first, what was learnt, and the order."""
    for pattern, placeholder in (
        (r"\b\d{8}-\d{6}-[0-9a-f]{6}\b", "RUN"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( [+-]\d{4})?", "WHEN"),
        (r"(/home/ada|/tmp)\S*", "HERE"),
        (r"\d+\.\d s\b", "T s"),
        (r"\bgpu[ =]\d", "gpu N"),
        (r" *\b\d+ %", " N %"),
        (r"[#.]{20,}", "BAR"),
        (r"(loss|accuracy) \d\.\d+", r"\1 X"),
    ):
        lines = [re.sub(pattern, placeholder, line) for line in lines]
    return sorted(lines)


_LOOP = """
exec 3<&0 < /dev/null
code=0
while IFS= read -r line <&3; do
    (exit $code)
    eval "$line"
    code=$?
done
"""


class Shell:
    """A shell that is typed into, and what it shows."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        # As after an installation: `python3` finds the package too.
        path = f"{ROOT / 'bin'}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        self.process = subprocess.Popen(
            # Its commands come by another way than stdin, which to the scheduler would be its input.
            ["bash", "--noprofile", "--norc", "-c", _LOOP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=directory,
            env={"PATH": path, "HOME": str(directory), "SGS_LEASE_DIR": str(directory / "leases"), **environment},
        )
        self.shown = b""

    def type(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def lines(self, count: int) -> list[str]:
        """The next lines, as soon as so many have been shown."""
        assert self.process.stdout
        end = time.monotonic() + 60
        while self.shown.count(b"\n") < count:
            ready, _, _ = select.select([self.process.stdout], [], [], end - time.monotonic())
            assert ready, f"only this was shown: {self.shown.decode()}"
            self.shown += self.process.stdout.read1(65536)
        lines = self.shown.split(b"\n", count)
        self.shown = lines.pop()
        return [line.decode() for line in lines]

    def close(self) -> None:
        with suppress(ProcessLookupError):  # with what runs in its background
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.kill()
        self.process.communicate()

    def rest(self) -> str:
        """What is shown beyond that, to the end."""
        return (self.shown + self.process.communicate(timeout=60)[0]).decode()


@pytest.mark.parametrize("steps", examples(), ids=lambda steps: steps[-1][0][:40])
def test_an_example_of_the_readme_prints_what_it_shows(
    steps: list[Step], tmp_path: Path, nvml: StandIn, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shell = Shell(tmp_path, nvml.environment)
    request.addfinalizer(shell.close)
    for command, expected in steps:
        if command.startswith("cat "):
            (tmp_path / command.split()[1]).write_text("\n".join(expected) + "\n")
        shell.type(f"{command}\n")
        assert comparable(shell.lines(len(expected))) == comparable(expected), command
    assert shell.rest() == ""


def test_the_readme_shows_at_least_its_five_examples() -> None:
    assert len(examples()) >= 5


def help_of(*command: str) -> str:
    argv = [str(ROOT / "bin" / command[0]), *command[1:], "--help"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_option_is_in_the_readme(command: list[str]) -> None:
    readme = (ROOT / "README.md").read_text()
    shown = help_of(*command)
    options = set(re.findall(r"--[a-z-]+", shown.split("Examples:")[0]))
    assert options
    assert {option for option in options if option not in readme} <= {"--help", "--version"}


def test_the_examples_in_the_help_of_sweeps_print_commands_that_the_scheduler_takes(tmp_path: Path) -> None:
    shown = help_of("simple_hypersearch").split("Examples:")[1].strip().splitlines()
    shell = ["env", f"PATH={ROOT / 'bin'}:/usr/bin:/bin", "sh", "-c"]
    for line in shown:
        sweep = line.partition(" | ")[0]
        lines = subprocess.run([*shell, sweep], capture_output=True, check=True, cwd=tmp_path).stdout
        plan = [*shell, "simple_gpu_scheduler --gpus 0 --dry-run"]
        planned = subprocess.run(plan, input=lines, capture_output=True, check=False)
        assert planned.returncode == 0, planned.stderr
        assert planned.stdout.count(b"\n") == lines.count(b"\n") > 1
    assert len(shown) >= 5


def test_files_that_the_documents_point_to_are_there() -> None:
    for document in (*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("docs/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
