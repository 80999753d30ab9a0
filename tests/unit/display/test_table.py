"""Tables in a terminal."""

from simple_gpu_scheduler.display.table import aligned, cut, with_commands, with_room


def test_columns_are_as_wide_as_their_widest_cell_and_aligned_to_their_sides() -> None:
    assert aligned([("JOB", "NAME"), ("1", "big"), ("1000", "x")], ">") == [" JOB  NAME", "   1  big", "1000  x"]


def test_a_wide_character_counts_as_two() -> None:
    assert aligned([("漢字", "a"), ("abcde", "b")]) == ["漢字   a", "abcde  b"]
    assert cut(["漢字漢字", "abc", "abcdef"], 5) == ["漢字…", "abc", "abcd…"]
    assert cut(["abcdef"], None) == ["abcdef"]


def test_rows_that_are_printed_one_by_one_are_alike() -> None:
    assert aligned([("a", "1")], "<>", widths=(3, 4), between=" ") == ["a      1"]
    assert aligned([("abcdef", "12345")], "<>", widths=(3, 4), between=" ") == ["abcdef 12345"]


def test_commands_are_shortened_to_the_width_that_other_columns_leave() -> None:
    rows = [("JOB", "COMMAND"), *((str(job), f"python3 train.py --data d --lr 0.{job}") for job in range(3))]
    assert with_commands(rows, ">", width=25) == [
        "JOB  COMMAND", "  0  python3 … --lr 0.0", "  1  python3 … --lr 0.1", "  2  python3 … --lr 0.2"
    ]  # fmt: skip
    assert with_commands(rows, ">", width=None) == aligned(rows, ">")
    assert with_commands(rows, ">", width=None, most=20)[1] == "  0  python3 … --lr 0.0"
    assert with_commands(rows[:1], ">", width=9) == ["JOB  COM…"]


JOBS = [
    ("JOB", "NAME", "ATTEMPTS", "GPUS", "COMMAND"),
    ("1", "-", "1", "0", "python3 train.py --lr 0.1"),
    ("2", "-", "2", "1", "python3 train.py --lr 0.2"),
]


def test_the_last_column_has_a_third_of_the_line_without_empty_columns_and_then_dispensable_ones() -> None:
    dispensable = ("ATTEMPTS", "GPUS")
    assert with_room(JOBS, 80, dispensable)[0] == ["JOB", "ATTEMPTS", "GPUS", "COMMAND"]
    assert with_room(JOBS, 30, dispensable)[0] == ["JOB", "GPUS", "COMMAND"]
    assert with_room(JOBS, 30, dispensable)[2] == ["2", "1", "python3 train.py --lr 0.2"]
    assert with_room(JOBS, 18, dispensable)[0] == ["JOB", "GPUS", "COMMAND"]
    assert with_room(JOBS, 12, dispensable)[0] == ["JOB", "COMMAND"]
    assert with_room(JOBS[:1], 80, dispensable) == [list(JOBS[0])], "no rows"
    short = [JOBS[0], ("1", "-", "1", "0", "true")]
    assert with_room(short, 30, dispensable)[0] == ["JOB", "ATTEMPTS", "GPUS", "COMMAND"], "it needs no more"
