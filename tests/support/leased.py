"""Python programs that lease GPUs, started and ended by tests."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Program

HEAD = "import json, os, signal, subprocess, sys, threading, time\nfrom simple_gpu_scheduler import *\n"
HOLD = "with lease({}) as gpus:\n    print(*gpus, flush=True)\n    input()\n    print(time.time(), flush=True)\n"


class Python:
    """Runs Python programs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._started: list[subprocess.Popen[str]] = []

    def start(self, code: str, **env: str) -> "subprocess.Popen[str]":
        """Start one, with pipes; it is a script, so that it has lines and can be imported."""
        path = self.directory / f"program{len(self._started)}.py"
        path.write_text(HEAD + textwrap.dedent(code))
        everything = {
            name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "PYTHONWARNINGS"))
        } | env
        settings = {"env": {name: value for name, value in everything.items() if value}, "cwd": self.directory}
        pipe = subprocess.PIPE
        process = subprocess.Popen([sys.executable, path], stdin=pipe, stdout=pipe, stderr=pipe, text=True, **settings)
        self._started.append(process)
        return process

    def run(self, code: str, **env: str) -> tuple[str, str]:
        """What one says and complains of until its end."""
        return self.start(code, **env).communicate(timeout=120)

    def hold(self, arguments: str = "gpus=[0]") -> "subprocess.Popen[str]":
        """One that has GPUs until `end`."""
        process = self.start(HOLD.format(arguments))
        assert has_line(process)
        return process

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture(name="python")  # so that a file which imports this may use that name for its arguments
def python_programs(tmp_path: Path) -> Iterator[Python]:
    python = Python(tmp_path)
    yield python
    python.close()


def end(process: "subprocess.Popen[str]") -> float:
    """Have one that holds GPUs end; when it did."""
    return float(process.communicate("\n", timeout=120)[0])


def is_free(program: Program, gpu: str = "0") -> bool:
    """Whether a command could have this GPU now."""
    return program.run("run", "--no-wait", "--gpus", gpu, "true").returncode == 0


def has_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()
