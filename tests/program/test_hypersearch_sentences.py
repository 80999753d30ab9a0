"""What a sweep says of itself, on one line each; tests/unit/cli/test_hypersearch.py has all the sentences."""

import subprocess
from pathlib import Path

from tests.conftest import HYPERSEARCH

LISTED = ["-p", "a", "1", "2"]


def hypersearch(directory: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    command = [*HYPERSEARCH, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=directory)


def test_a_mistake_ends_it_with_one_line_and_prints_nothing(tmp_path: Path) -> None:
    done = hypersearch(tmp_path, "x {a}", *LISTED, "--sampler", "lhs")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("simple_hypersearch: --sampler lhs needs the number of samples; add --n-samples N\n")


def test_what_only_looks_doubtful_is_not_reported(tmp_path: Path) -> None:
    values = ["host:8080", "1:10", "10:20:30", "cuda:0", "a:b:c", "0,1", "2,3"]
    done = hypersearch(tmp_path, "x {a}", "-p", "a", *values, "--sampling-mode", "grid")
    assert (done.stdout.splitlines(), done.stderr) == ([f"x {value}" for value in values], "")


def test_null_is_the_option_wherever_it_stands(tmp_path: Path) -> None:
    for args in (["-0", "x {a}", *LISTED], ["x {a}", *LISTED, "-0"], ["x {a}", *LISTED, "--null"]):
        assert hypersearch(tmp_path, *args, "--sampling-mode", "grid").stdout == "x 1\0x 2\0"


def test_several_files_come_one_after_another(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"parameters": {"a": [1, 2]}}')
    (tmp_path / "b.json").write_text('{"parameters": {"a": [2, 3]}}')
    done = hypersearch(tmp_path, "x {a}", "--from", "a.json", "--from", "b.json", "--sampling-mode", "grid")
    assert done.stdout.splitlines() == ["x 1", "x 2", "x 3"]
    assert done.stderr == "simple_hypersearch: left out 1 repeated line\n"


def test_a_saved_sweep_is_not_written_over_by_another(tmp_path: Path) -> None:
    assert hypersearch(tmp_path, "x {a}", *LISTED, "--seed", "1", "--save", "s.json").returncode == 0
    before = (tmp_path / "s.json").read_bytes()
    assert hypersearch(tmp_path, "x {a}", *LISTED, "--seed", "1", "--save", "s.json").returncode == 0
    done = hypersearch(tmp_path, "x {a}", *LISTED, "--seed", "2", "--save", "s.json")
    assert (done.returncode, done.stdout, (tmp_path / "s.json").read_bytes()) == (2, "", before)
    assert "that file is another sweep and is not overwritten; choose another, or remove it first" in done.stderr


def test_nothing_is_saved_where_nothing_is_printed(tmp_path: Path) -> None:
    assert hypersearch(tmp_path, "x {a}", *LISTED, "--where", "a > 5", "--save", "s.json").returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_search_that_found_all_is_not_begun_again_for_each_repeat(tmp_path: Path) -> None:
    sweep = ["p {a} {--b b} {seed}", "-p", "a", "1", "2", "-p", "b", "3", "4", "--when", "b", "a == 1"]
    done = hypersearch(tmp_path, *sweep, "--repeat", "500", "--n-samples", "20", "--sampler", "halton")
    assert len(set(done.stdout.splitlines())) == 1500
    assert "found only 3 different commands of the 20" in done.stderr


def test_options_are_looked_at_with_each_value_where_there_are_too_many_combinations(tmp_path: Path) -> None:
    numbers = [str(number) for number in range(40)]
    sweep = ["x #: gpus={g} retries={r}", "-p", "g", *numbers, "-p", "r", *numbers]
    assert len(hypersearch(tmp_path, *sweep).stdout.splitlines()) == 1600
    done = hypersearch(tmp_path, *sweep, "many")
    assert (done.returncode, done.stdout) == (2, "")
    assert "retries: 'many' is not a whole number (0 or more)" in done.stderr
