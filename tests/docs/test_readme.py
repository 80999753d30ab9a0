"""Every console example in the README and the pages of docs/ prints what it shows, in a shell, command by command.

In a ```console block, a line that starts with `$ ` is typed, and the lines below it are what it prints. `cat NAME`
writes what it shows to NAME if there is no such file yet. No other block is run. After a change of the output,

    UPDATE_EXAMPLES=1 bin/test tests/docs/test_readme.py

rewrites the examples that no longer match. Read the difference before you commit it.
"""

import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT
from tests.support.nvml import StandIn

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

README = ROOT / "README.md"
INDEX = ROOT / "docs" / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
UPDATE = bool(os.environ.get("UPDATE_EXAMPLES"))
END = "(the command has ended)"

COMMANDS = [
    ["simple_gpu_scheduler"],
    ["sgs"],
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
                "clean",
                "report",
                "submit",
                "simulate",
                "tune",
                "doctor",
                "metrics",
            ),
        )
    ),
    ["simple_hypersearch"],
]


class Step(NamedTuple):
    """A command that is typed, and the lines that it shows."""

    command: str
    shown: list[str]


class Example(NamedTuple):
    """A console block of a page."""

    page: Path
    text: str
    steps: list[Step]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).with_suffix('')}: {self.steps[-1].command[:40]}"


def examples() -> list[Example]:
    """The console blocks of all pages."""
    found = []
    for page in PAGES:
        for text in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            steps: list[Step] = []
            for line in text.splitlines():
                if line.startswith("$ "):
                    steps.append(Step(line[2:], []))
                else:
                    steps[-1].shown.append(line)
            found.append(Example(page, text, steps))
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
        (r"\b\d+ (KiB|B)\b", "N KiB"),  # a file system may have larger blocks, or need none
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


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


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
        """The next lines, as soon as this many have been shown."""
        end = time.monotonic() + 60
        while self.shown.count(b"\n") < count:
            assert self._reads(end - time.monotonic()), f"only this was shown: {self.shown.decode()}"
        lines = self.shown.split(b"\n", count)
        self.shown = lines.pop()
        return [line.decode() for line in lines]

    def _reads(self, seconds: float) -> bool:
        """Whether anything was shown in time."""
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], max(0, seconds))[0]:
            return False
        self.shown += self.process.stdout.read1(65536)
        return True

    def all_lines(self, quiet: float = 1.0) -> list[str]:
        """What is shown until the command has ended, and its jobs in the background have been quiet for a second."""
        self.type(f"{{ code=$?; echo '{END}'; (exit $code); }}\n")
        while END.encode() not in self.shown:
            assert self._reads(60), f"only this was shown: {self.shown.decode()}"
        while self._reads(quiet):
            pass
        lines = lines_of(self.shown.decode())
        self.shown = b""
        return [line for line in lines if line != END]

    def close(self) -> None:
        with suppress(ProcessLookupError):  # with what runs in its background
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.kill()
        self.process.communicate()

    def rest(self) -> str:
        """What is shown beyond that, to the end."""
        return (self.shown + self.process.communicate(timeout=120)[0]).decode()


def update(example: Example, shell: Shell, directory: Path) -> None:
    """Write what the example shows now into its page; a step that differs only in times and the like stays."""
    typed = []
    for step in example.steps:
        type_step(step, shell, directory)
        lines = shell.all_lines()
        if step is example.steps[-1]:
            lines += lines_of(shell.rest())
        same = comparable(lines) == comparable(step.shown)
        now = step.shown if same else [line.replace(str(directory), "/home/ada").rstrip() for line in lines]
        typed.append("\n".join([f"$ {step.command}", *now]) + "\n")
    with example.page.open("r+") as page:
        fcntl.flock(page, fcntl.LOCK_EX)  # tests of one page may run side by side
        text = page.read()
        page.seek(0)
        page.truncate()
        page.write(text.replace(f"```console\n{example.text}```", f"```console\n{''.join(typed)}```", 1))


def type_step(step: Step, shell: Shell, directory: Path) -> None:
    program, _, name = step.command.partition(" ")
    if program == "cat" and not (directory / name).exists():
        (directory / name).write_text("\n".join(step.shown) + "\n")
    shell.type(f"{step.command}\n")


@pytest.mark.parametrize("example", examples(), ids=str)
def test_an_example_prints_what_it_shows(
    example: Example, tmp_path: Path, nvml: StandIn, request: pytest.FixtureRequest
) -> None:
    if re.search(r"(\$|\|) jq ", example.text) and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copy(ROOT / "tests" / "golden" / "journal-1.jsonl", tmp_path / "journal.jsonl")
    shell = Shell(tmp_path, nvml.environment)
    request.addfinalizer(shell.close)
    if UPDATE:
        update(example, shell, tmp_path)
        return
    for step in example.steps:
        type_step(step, shell, tmp_path)
        assert comparable(shell.lines(len(step.shown))) == comparable(step.shown), step.command
    assert shell.rest() == ""


def test_the_readme_shows_at_least_its_five_examples() -> None:
    assert sum(example.page == README for example in examples()) >= 5


def test_the_readme_can_be_read_in_a_hurry() -> None:
    assert README.read_text().count("\n") <= 200


def test_the_readme_and_the_index_link_each_page() -> None:
    for document, folder in ((README, "docs/"), (INDEX, "")):
        text = document.read_text()
        missing = [page.name for page in PAGES if page not in (README, INDEX) and f"]({folder}{page.name}" not in text]
        assert not missing, document


def help_of(*command: str) -> str:
    argv = [str(ROOT / "bin" / command[0]), *command[1:], "--help"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_option_is_on_a_page(command: list[str]) -> None:
    pages = "\n".join(page.read_text() for page in PAGES)
    shown = help_of(*command)
    options = set(re.findall(r"--[a-z-]+", shown.split("Examples:")[0]))
    assert options
    assert {option for option in options if option not in pages} <= {"--help", "--version"}


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


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_what_the_documents_link_to_is_there() -> None:
    for document in (*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("docs/**/*.md")):
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^):]+))?\)", document.read_text()):
            path = (document.parent / target) if target else document
            assert path.exists(), f"{document.name}: {target}"
            assert not anchor or anchor in anchors(path), f"{document.name}: {target}#{anchor}"
