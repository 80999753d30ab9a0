"""The command that prints the commands of a sweep."""

import subprocess

import pytest

from tests.conftest import HYPERSEARCH

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere


def hypersearch(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*HYPERSEARCH, *args], capture_output=True, text=True, check=False, timeout=120)


def test_the_grid_in_its_order() -> None:
    done = hypersearch("x {a} {b}", "-p", "a", "1", "-2", "-p", "b", "p", "q r", "--sampling-mode", "grid")
    assert done.stdout.splitlines() == ["x 1 p", "x 1 'q r'", "x -2 p", "x -2 'q r'"]


def test_it_is_shuffled_unless_asked_and_the_seed_gives_the_same_lines() -> None:
    values = [str(number) for number in range(50)]
    lines = [hypersearch("x {a}", "--seed", seed, "-p", "a", *values).stdout.splitlines() for seed in ("1", "1", "2")]
    assert lines[0] == lines[1] != lines[2]
    assert sorted(lines[0]) == sorted(f"x {value}" for value in values) != lines[0]


def test_a_sample_holds_no_combination_twice() -> None:
    values = [str(number) for number in range(10)]
    lines = hypersearch("{a}{b}{c}", *(word for name in "abc" for word in ("-p", name, *values)), "--n-samples", "300")
    assert len(set(lines.stdout.splitlines())) == 300


def test_values_are_one_word_to_the_shell() -> None:
    done = hypersearch("printf '[%s]' {a} {b}", "-p", "a", "a b; rm -rf '$x'", "-p", "b", "")
    assert subprocess.run(["sh", "-c", done.stdout], capture_output=True, check=True).stdout == b"[a b; rm -rf '$x'][]"


def test_braces_of_the_shell_are_doubled() -> None:
    done = hypersearch("awk '{{print $1}}' {f}", "-p", "f", "x")
    assert done.stdout == "awk '{print $1}' x\n"


def test_where_nothing_can_be_printed_it_says_so_at_once() -> None:
    command = "exec \"$@\" 'x {a}' -p a range:1:1000000000 >&-"
    argv = ["sh", "-c", command, "sh", *HYPERSEARCH]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (1, "simple_hypersearch: cannot write the output: stdout is closed\n")


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    values = " ".join(f"-p {name} {' '.join(map(str, range(100)))}" for name in "abcd")
    command = f"{HYPERSEARCH[0]} -c '{HYPERSEARCH[2]}' '{{a}}{{b}}{{c}}{{d}}' {values} --sampling-mode grid | head -2"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=120)
    assert (done.stdout, done.stderr) == ("0000\n0001\n", "")


def test_a_grid_beyond_counting_is_an_error() -> None:
    done = hypersearch("{a} {b}", "-p", "a", "range:1:1000000000000", "-p", "b", "range:1:1000000000000")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the sweep has more than 1e+18 combinations, too many to count" in done.stderr


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (
            ["my_program --param1 {param1} --param2 {param2}", "-p", "param1", "0", "1", "-p", "param2", "2", "3"],
            {f"my_program --param1 {one} --param2 {two}" for one in "01" for two in "23"},
        ),
        (
            [
                "python3 train_dnn.py --lr {lr} --batch_size {bs}",
                "-p",
                "lr",
                "0.001",
                "0.0005",
                "0.0001",
                "-p",
                "bs",
                "32",
                "64",
                "128",
            ],
            {
                f"python3 train_dnn.py --lr {lr} --batch_size {bs}"
                for lr in ("0.001", "0.0005", "0.0001")
                for bs in (32, 64, 128)
            },
        ),
    ],
)
def test_the_examples_of_the_published_0_1_4_print_what_they_did(args: list[str], lines: set[str]) -> None:
    for mode in ([], ["--sampling-mode", "grid"], ["--sampling-mode", "shuffled_grid", "--seed", "3"]):
        printed = hypersearch(*args, *mode).stdout.splitlines()
        assert (set(printed), len(printed)) == (lines, len(lines))
    sample = hypersearch(args[0], "--n-samples", "3", *args[1:]).stdout.splitlines()
    assert len(sample) == len(set(sample)) == 3
    assert set(sample) < lines


def test_it_feeds_the_scheduler() -> None:
    done = hypersearch("--version")
    assert done.stdout.startswith("simple_hypersearch 0.")
