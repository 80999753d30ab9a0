"""The order of a sweep, as simple_hypersearch prints it."""

import subprocess
import sys

import pytest

from tests.conftest import HYPERSEARCH

SAMPLERS = ["sobol", "halton", "lhs"]


def hypersearch(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*HYPERSEARCH, *args], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_one_command_gives_the_same_samples_twice_and_other_seeds_give_others(sampler: str) -> None:
    command = ["{a} {d} {g}", "-p", "a", "range:1:1e18", "-p", "d", "uniform:0:1", "-p", "g", "normal:0:1"]
    done = [hypersearch(*command, "--sampler", sampler, "--n-samples", "9", "--seed", "-3") for _ in range(2)]
    assert (done[0].returncode, done[0].stderr, len(set(done[0].stdout.splitlines()))) == (0, "", 9)
    assert done[0].stdout == done[1].stdout


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_sampler_needs_scipy_and_a_number_of_samples(sampler: str) -> None:
    without = "import sys; sys.modules['scipy'] = None; " + HYPERSEARCH[2]
    args = ["{a}", "-p", "a", "1", "2", "--sampler", sampler]
    command = [sys.executable, "-c", without, *args, "--n-samples", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"--sampler {sampler} needs scipy; install it with" in done.stderr
    assert "pip install" in done.stderr
    assert "[search]" in done.stderr
    done = hypersearch(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"simple_hypersearch: --sampler {sampler} needs the number of samples; add --n-samples N\n"


@pytest.mark.parametrize("sampler", [(), ("--sampler", "sobol")])
def test_more_samples_than_can_be_counted_are_no_bug(sampler: tuple[str, ...]) -> None:
    done = hypersearch("{a}", "-p", "a", "1", "2", "--n-samples", str(10**20), *sampler)
    assert done.returncode in (0, 2)
