"""`report --png`: the picture of a run, and what is said where matplotlib is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Program
from tests.program.test_report import CALL, REPORT

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_command_writes_it(program: Program) -> None:
    program.run("--gpus", "0", stdin="true\nfalse\n")
    done = subprocess.run(
        [*REPORT, "--png", "run.png"], cwd=program.directory, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote run.png\n")
    assert (program.directory / "run.png").read_bytes().startswith(PNG)


def test_without_matplotlib_it_says_how_to_get_it(program: Program, tmp_path: Path) -> None:
    program.run("--gpus", "0", stdin="true\n")
    without = f"import sys\nsys.modules['matplotlib'] = None\n{CALL}"
    done = subprocess.run(
        [sys.executable, "-c", without, "--png", "run.png"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "matplotlib" in line
    assert "[plot]" in line
    assert not (tmp_path / "run.png").exists()
