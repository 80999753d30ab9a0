"""What a start loads is what it takes: modules that it does not need stay away.

Whoever adds one of them finds out here. Most of their words are in `base/stdlib.py` or `base/values.py`; a module that
only some runs need is imported where they need it. Reasons and figures are in docs/decisions/base.md.
"""

import os
import pty
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import ROOT, UNMEASURED, Program, has_text, until

pytestmark = pytest.mark.unmeasured
START = [sys.executable, "-S", "-X", "importtime", str(ROOT / "bin/start.py")]

SLOW = {
    *("__future__", "collections", "contextlib", "copy", "dataclasses", "datetime", "enum", "functools", "inspect"),
    *("json", "locale", "logging", "pathlib", "platform", "queue", "random", "re", "shlex", "shutil", "signal"),
    *("socket", "string", "subprocess", "tempfile", "textwrap", "threading", "traceback", "typing", "uuid", "weakref"),
    *("bisect", "glob", "gettext", "importlib", "importlib.metadata", "math", "mmap", "pynvml", "rich", "statistics"),
}
# Modules of ours that only some runs need.
_OF_SOME = {
    *("api", "base.extras", "display.abbreviation", "display.live.view", "engines.simulated", "gpus.survey"),
    *(
        "hypersearch.commands",
        "jobfile.interpreter",
        "inputs.follow",
        "inputs.pipes",
        "inputs.submit",
        "joblog.sink",
        "journal.find",
        "journal.lengths",
    ),
    *("notify.sink", "output.log_file", "output.sink", "remote.client", "resume.find", "report.build"),
    *("scheduling.policies.learned", "scheduling.policies.scored", "scheduling.policies.shared"),
}
OF_SOME_RUNS = {f"simple_gpu_scheduler.{name}" for name in _OF_SOME}


def names(importtime: str) -> set[str]:
    return {line.rpartition("|")[2].strip() for line in importtime.splitlines() if line.startswith("import time:")}


def brought_by_click() -> set[str]:
    libraries = str(Path(pytest.__file__).parent.parent)
    argv = [*START[:-1], "-c", "import sys; sys.path.append(sys.argv[1]); import click", libraries]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=UNMEASURED)
    return names(done.stderr)


def check(importtime: str, unwanted: Collection[str]) -> None:
    """None of these is loaded, except what click itself loads where it is loaded."""
    loaded = names(importtime)
    assert "simple_gpu_scheduler.base.values" in loaded
    known = brought_by_click() if "click" in loaded else set()
    needless = sorted(loaded.intersection(unwanted) - known)
    assert not needless, "a start takes longer with each of these; where to take their words from is said above"


@pytest.mark.parametrize("option", ["--retries=0", "--no-journal"])
def test_a_plain_run(tmp_path: Path, option: str) -> None:
    jobs = tmp_path / "jobs"
    jobs.write_text("true\n# a comment\nsleep 0.01   #: gpus=0 timeout=1m name=it\n")
    with jobs.open() as stdin:
        done = subprocess.run(
            [*START, "sgs", "--gpus", "0", option],
            stdin=stdin,
            capture_output=True,
            text=True,
            env=UNMEASURED,
            check=True,
        )
    check(done.stderr, SLOW | OF_SOME_RUNS)


def test_a_run_that_prints_on_a_terminal(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.write_text("true\n")
    ours, its = pty.openpty()
    environment = {**UNMEASURED, "TERM": "xterm"}
    with (
        jobs.open() as stdin,
        subprocess.Popen(
            [*START, "sgs", "--gpus", "0"], stdin=stdin, stdout=its, stderr=its, env=environment
        ) as process,
    ):
        os.close(its)
        said = b"".join(_read_all(ours)).decode()
        assert process.wait() == 0
    check(said.replace("\r", ""), SLOW | OF_SOME_RUNS)


def _read_all(fd: int) -> Iterator[bytes]:
    with open(fd, "rb", buffering=0) as file, suppress(OSError):  # the other end was closed
        while data := file.read(65536):
            yield data


@pytest.fixture
def living_run(program: Program, tmp_path: Path) -> Program:
    """One whose GPU is busy, so that what is submitted waits."""
    args = ["--gpus", "0", "--ignore-occupancy", "--output", "files", "--follow", "queue.fifo"]
    program.start(*args, env=UNMEASURED, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until((tmp_path / "queue.fifo").exists)
    until(lambda: program.run("submit", "--", "echo it runs > here; exec sleep 1000", env=UNMEASURED).returncode == 0)
    until(has_text(tmp_path / "here"))
    return program


@pytest.mark.parametrize(
    "command", [["status"], ["submit", "--", "true", "two words"], ["logs", "1"]], ids=lambda words: words[0]
)
def test_a_command_about_a_run(living_run: Program, command: list[str]) -> None:
    done = subprocess.run(
        [*START, "sgs", *command], capture_output=True, text=True, env=UNMEASURED, cwd=living_run.directory, check=True
    )
    ours = {"inputs.submit", "journal.find", "output.log_file", "remote.client"}
    # `status` finds the metric in what jobs print by patterns.
    patterns = {"re", "enum", "functools", "collections"} if command == ["status"] else set()
    check(done.stderr, (SLOW | OF_SOME_RUNS) - patterns - {f"simple_gpu_scheduler.{name}" for name in ours})


def test_a_sweep() -> None:
    done = subprocess.run(
        [*START, "simple_hypersearch", "train --lr {lr}", "-p", "lr", "0.1", "0.01"],
        capture_output=True,
        text=True,
        env=UNMEASURED,
        check=True,
    )
    # It is made of patterns.
    check(done.stderr, SLOW - {"math", "re", "enum", "functools", "collections"})


def test_json_that_is_none_is_an_error_where_json_is_not_loaded() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from simple_gpu_scheduler.base import quickjson\n"
        "for text in ('{', '[1,]', '\"\\n\"', '{\"a\" 1}', 'nul', ''):\n"
        "    try: print(quickjson.loads(text))\n"
        "    except ValueError: pass\n"
        "print('json' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-ISc", code, str(ROOT)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
