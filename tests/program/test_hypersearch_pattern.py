"""What simple_hypersearch makes of a pattern, as shells and the scheduler read it."""

import json
import subprocess
from pathlib import Path

import pytest

from simple_gpu_scheduler.hypersearch.commands import Sweeps
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, Sweep, WrittenValues
from tests.conftest import HYPERSEARCH, Program

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere


def hypersearch(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*HYPERSEARCH, *args], capture_output=True, text=True, check=False, timeout=120)


def lines_of(pattern: str, *, lines_end: bool = True, **settings) -> list[str]:
    """The lines of a grid, in its order; a setting that is none of a sweep's is a parameter."""
    known = {name: settings.pop(name) for name in list(settings) if name in Sweep._fields}
    words = {name: WrittenValues(tuple(values)) for name, values in settings.items()}
    sweep = Sweep(pattern, **{"parameters": words, "sampling_mode": IN_ORDER, "seed": 1, **known})
    return list(Sweeps([sweep], lines_end=lines_end).lines())


@pytest.mark.parametrize("value", ["a b", "it's", "", "#"])
def test_the_value_behind_a_flag_is_one_word(value) -> None:
    (line,) = lines_of("printf '[%s]' {--f a} {--f=a} {k=a} {?a}", a=[value])
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == f"[--f][{value}][--f={value}][k={value}][{value}]"


def test_options_of_a_line_reach_the_scheduler(program: Program) -> None:
    pattern = "true {a} '#: no' #: gpus={g} time=2h name=j{a}"
    args = [pattern, "-p", "a", "1", "2", "-p", "g", "0", "1", "2", "--sampling-mode", "grid"]
    done = program.run("--gpus", "0", "1", "--dry-run", stdin=hypersearch(*args).stdout)
    started = [line.split(": ", 1) for line in done.stdout.decode().splitlines()]
    counts = {"cpu": 0, "gpu 0": 1, "gpu 1": 1, "gpus 0,1": 2}
    assert sorted((command, counts[place]) for place, command in started) == [
        (f"true {a} '#: no'", count) for a in (1, 2) for count in (0, 1, 2)
    ]


@pytest.mark.parametrize(
    ("pattern", "values", "sentence"),
    [
        ("x {a} #: gpuz=1", ["1"], "after #: in 'x 1 #: gpuz=1': unknown option 'gpuz'; did you mean gpus?"),
        ("x #: gpus={a}", ["1", "2", "two"], "gpus: 'two' is not a whole number (0 or more)"),
        ("x #: time={a}", ["1h", "2q"], "time: '2q' is not a duration"),
        ("x #: {a}", ["gpus=1", "gpu=1"], "unknown option 'gpu'; did you mean gpus?"),
        (
            "x #: gpus={a}",
            ["1", ""],
            "{a} cannot take the value '' of a: after #: a value must be a single word without spaces",
        ),
        ("x #: gpus=1 gpus={a}", ["1"], "'gpus' is given twice"),
        ("x #: gpus=1 # {a}", ["1"], "a comment cannot follow options"),
    ],
)
def test_a_wrong_option_is_met_before_anything_is_printed(pattern, values, sentence) -> None:
    done = hypersearch(pattern, "--sampling-mode", "grid", "-p", "a", *values)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_names_say_the_values_and_stand_behind_the_options(program: Program) -> None:
    args = [
        "printf '%s ' $SGS_NAME {b} #: gpus=0",
        "-p",
        "lr",
        "0.1",
        "-p",
        "b",
        "p q",
        "p,q",
        "--name",
        "{lr:.0e}-{b}",
    ]
    assert "the pattern does not use the parameter lr" in hypersearch(*args).stderr
    args[0] = args[0].replace("{b}", "{b} {lr}")
    made = hypersearch(*args, "--sampling-mode", "grid").stdout
    assert [line.partition("#: ")[2] for line in made.splitlines()] == [
        "gpus=0 name=1e-01-p_q",
        "gpus=0 name=1e-01-p_q-2",
    ]
    done = program.run("--cpu-slots", "1", "--gpus", "0", stdin=made)
    assert done.stdout == b"1e-01-p_q p q 0.1 1e-01-p_q-2 p,q 0.1 "


def test_the_whole_pipe_runs_each_configuration_once(program: Program, tmp_path: Path) -> None:
    args = ["echo {a} {b} {i} >> ran.txt", "-p", "a", "range:1:6", "-p", "b", "x y", "z", "it's", "--name", "{a}-{b}"]
    done = program.run("--gpus", "0", "1", "2", stdin=hypersearch(*args).stdout)
    assert done.returncode == 0
    ran = [line.rpartition(" ") for line in (tmp_path / "ran.txt").read_text().splitlines()]
    assert sorted(values for values, _, _ in ran) == sorted(
        f"{a} {b}" for a in range(1, 7) for b in ("x y", "z", "it's")
    )
    assert sorted(int(number) for _, _, number in ran) == list(range(1, 19))


def test_half_a_character_in_a_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps({"pattern": "x {a}", "parameters": {"a": ["\ud800"]}}))
    done = hypersearch("--from", str(path))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
