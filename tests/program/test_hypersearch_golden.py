"""The same seed gives the same lines, in this and every later version, on every version of Python.

The golden file is a transcript of commands. A line of it that changes breaks a user's `--seed`: it may only
grow. `python -m tests.program.test_hypersearch_golden` prints it anew.
"""

import os
import shlex
import subprocess
import sys

import pytest

from tests.conftest import HYPERSEARCH, ROOT

GOLDEN = ROOT / "tests/golden/hypersearch.txt"


def transcript() -> list[tuple[str, str]]:
    """Each command, and what it prints."""
    blocks = GOLDEN.read_text().split("$ simple_hypersearch ")[1:]
    return [(command, lines) for command, _, lines in (block.partition("\n") for block in blocks)]


def printed(command: str) -> str:
    done = subprocess.run(
        [*HYPERSEARCH, *shlex.split(command)], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    return done.stdout


@pytest.mark.parametrize(("command", "lines"), transcript(), ids=lambda value: value[:60])
def test_the_same_seed_gives_the_same_lines(command: str, lines: str) -> None:
    assert printed(command) == lines


def test_the_hash_seed_of_python_is_not_in_it() -> None:
    command, lines = transcript()[0]
    for seed in ("1", "2"):
        done = subprocess.run(
            [*HYPERSEARCH, *shlex.split(command)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        assert done.stdout == lines


if __name__ == "__main__":
    for command, _ in transcript():
        sys.stdout.write(f"$ simple_hypersearch {command}\n{printed(command)}")
