"""Tables in a terminal."""

from simple_gpu_scheduler.display.table import aligned, cut


def test_columns_are_as_wide_as_their_widest_cell_and_aligned_to_their_sides() -> None:
    assert aligned([("JOB", "NAME"), ("1", "big"), ("1000", "x")], ">") == [" JOB  NAME", "   1  big", "1000  x"]


def test_a_wide_character_counts_as_two() -> None:
    assert aligned([("漢字", "a"), ("abcde", "b")]) == ["漢字   a", "abcde  b"]
    assert cut(["漢字漢字", "abc", "abcdef"], 5) == ["漢字…", "abc", "abcd…"]
    assert cut(["abcdef"], None) == ["abcdef"]


def test_rows_that_are_printed_one_by_one_are_alike() -> None:
    assert aligned([("a", "1")], "<>", widths=(3, 4), between=" ") == ["a      1"]
    assert aligned([("abcdef", "12345")], "<>", widths=(3, 4), between=" ") == ["abcdef 12345"]
