"""Each mistake in a sweep has a sentence of its own, on one line, and nothing is printed."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import HYPERSEARCH

DRAWN = ["-p", "a", "uniform:0:1"]
LISTED = ["-p", "a", "1", "2"]
TWO = [*LISTED, "-p", "b", "1", "2"]


def hypersearch(directory: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    command = [*HYPERSEARCH, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=directory)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["x {a}", *DRAWN], "the values of a are drawn at random; add --n-samples N: how many commands to print"),
        (["x {a}", "-p", "a", "int:1:9", "--n-samples", "2", "--sampling-mode", "grid"], "use range:, or leave out"),
        (["x {a}", *LISTED, "--sampler", "lhs"], "--sampler lhs needs the number of samples; add --n-samples N"),
        (
            ["x {a}", *LISTED, "--sampler", "lhs", "--n-samples", "2", "--sampling-mode", "grid"],
            "--sampler lhs has an order of its own; leave out --sampling-mode",
        ),
        (["x", "--sampler", "lhs", "--n-samples", "2"], "--sampler lhs needs a parameter to sample"),
        (["x {a}", *DRAWN, "--sampler", "lhs", "--n-samples", "9999999"], "can draw at most 1,000,000 samples"),
        (["x {seed}", "-p", "seed", "1", "--repeat", "2"], "--repeat gives {seed} its values; leave out --repeat or"),
        (["x {a} {b}", *TWO, "--zip", "a"], "--zip a names only one parameter; name all that vary together"),
        (["x {a} {b}", *TWO, "--zip", "a,a"], "--zip a,a: a is already in a zip"),
        (["x {a} {b}", *TWO, "--zip", "a,b", "--zip", "b,a"], "--zip b,a: b is already in a zip"),
        (["x {a} {b}", *TWO, "--zip", ""], "--zip lacks a name; write it as --zip lr,wd"),
        (
            ["x {a} {b}", *DRAWN, "-p", "b", "1", "--zip", "a,b", "--n-samples", "2"],
            "--zip a,b: a is drawn at random; only listed values can be zipped",
        ),
        (["x {a}", *LISTED, "--where", "c < 1"], "there is no parameter c (the parameters are a; quote strings"),
        (["x {a-b} {a.b}", "-p", "a-b", "1", "-p", "a.b", "2", "--where", "a_b < 1"], "a_b is ambiguous: a-b or a.b"),
        (["x {a}", *LISTED, "--where", " "], "a condition is empty; write one, as --where 'lr < 1'"),
        (["x {a}", *LISTED, "--where", "a = 1"], "; write == for ="),
        (["x {a}", *LISTED, "--where", "a < 2 && a > 0"], "; write and for &&"),
        (
            ["x {a}", *LISTED, "--where", "a"],
            "'a' is a number; compare it with something; quote a condition that contains",
        ),
        (["x {a}#: gpus=2", *LISTED], "put a space between {a} and #:, or the shell reads both as one word"),
        (["x {a} ${OUT}", *LISTED], "${OUT} is the shell's; write ${{OUT}}, or $OUT"),
        (
            ["x { a }", *LISTED],
            "{ a } is not a placeholder such as {NAME}, {NAME:.2f}, {NAME!s} or {--flag NAME}; write {a}",
        ),
        (["x {A}", *LISTED], "did you mean a?"),
        (["x {a}", *LISTED, "--name", "{c}"], "--name: the pattern has {c}, but there is no parameter of that name"),
        (["x {?a}", *LISTED, "--when", "a", "a > 1"], "--when: a cannot depend on itself"),
        (["{?a} # {b}", *TWO, "--when", "a", "b > 1"], "the pattern has nothing that always runs"),
        (["# {a}", *LISTED], "the pattern has nothing that always runs"),
        (["x {a}", "-p", "a", "logspace:-5:-1:5"], "both ends must be above 0; they are values, not exponents"),
        (["x {a}", "-p", "a=1", "2"], "after -p a=VALUE every value must be literal too: write a=2"),
        (["x {a}", *LISTED, "--seed", "1.5"], "'1.5' is not a whole number"),
        (["x {a}", *LISTED, "--from", "none.json"], "cannot read none.json: No such file"),
        (["x {a}", "--from", "bad.json"], "bad.json: n-samples must be 1 or more"),
        (["x {a}", "--from", "modes.json"], "modes.json: sampling-mode must be one of shuffled_grid, grid, not 'both'"),
        (["x {a}", "--from", "rows.json"], "rows.json: rows must be a list of at least one configuration"),
        (["x {a}", "--from", "none_in_it.json"], "none_in_it.json: sweeps must be a list of at least one sweep"),
        (["x {a}", "--from", "nested.json"], "nested.json: a sweep within sweeps cannot contain sweeps"),
        (["x {a}", "--from", "unused.json"], "unused.json: the pattern does not use the parameter b"),
        (["x {a}", *LISTED, "--from", "columns.json"], "columns.json: the parameter a is also a column of the rows"),
    ],
)
def test_a_mistake_has_a_sentence(args: list[str], sentence: str, tmp_path: Path) -> None:
    for name, content in {
        "bad.json": '{"n-samples": 0}',
        "modes.json": '{"sampling-mode": "both"}',
        "rows.json": '{"rows": []}',
        "none_in_it.json": '{"sweeps": []}',
        "nested.json": '{"sweeps": [{"sweeps": [{}]}]}',
        "unused.json": '{"parameters": {"a": 1, "b": 2}}',
        "columns.json": '{"rows": [{"a": 1}]}',
    }.items():
        (tmp_path / name).write_text(content)
    done = hypersearch(tmp_path, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "note"),
    [
        (["x {a}", "-p", "a", "log-uniform:1e-5:1e-1"], "is taken literally; did you mean loguniform:1e-5:1e-1?"),
        (["x {a}", "-p", "a", "uniform", "0", "1"], "'uniform' is taken literally; did you mean uniform:0:1?"),
        (["x {a}", "-p", "a", "0.1,0.01"], "a: '0.1,0.01' is a single value; separate several with spaces"),
        (["x {a} {?b}", *TWO, "--when", "b", "a == 3"], "--when b is never true, so no command contains b"),
        (["x {a}", *LISTED, "--n-samples", "9"], "found only 2 different commands of the 9 requested"),
        (["x {a}", "-p", "a", "1", "1", "2"], "a: '1' is repeated and left out"),
        (["x {a:.0f}", "-p", "a", "1.1", "1.2"], "left out 1 repeated line"),
    ],
)
def test_what_is_doubtful_is_printed_and_reported(args: list[str], note: str, tmp_path: Path) -> None:
    done = hypersearch(tmp_path, *args)
    assert done.returncode == 0
    assert done.stdout.startswith("x ")
    assert note in done.stderr
    assert done.stderr.count("\n") == 1


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
