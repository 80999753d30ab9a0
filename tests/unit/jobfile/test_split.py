"""Bytes -> logical lines: their sizes, their numbers, and how much of the input they have taken."""

import pytest

from simple_gpu_scheduler.jobfile.parse import LONGEST_LINE
from simple_gpu_scheduler.jobfile.split import Line, LineCutter


def test_the_size_of_a_line_that_goes_on_counts_the_newlines_in_it() -> None:
    assert LineCutter().feed(b"ab\\\ncd\\\r\nef\ng\n") == [Line(1, b"ab\\\ncd\\\nef", 10), Line(4, b"g", 1)]


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"a # b\\\nc\n", [b"a # b\\", b"c"]),
        (b"a 'b # c\\\nd'\n", [b"a 'b # c\\\nd'"]),
        (b"a\\\\\nb\n", [b"a\\\\", b"b"]),
        (b"a\\\\\\\nb\n", [b"a\\\\\\\nb"]),
        (b"a \\\n# b\\\nc\n", [b"a \\\n# b\\", b"c"]),
    ],
)
def test_a_line_goes_on_behind_a_backslash_that_none_escapes_in_no_comment(data: bytes, texts: list[bytes]) -> None:
    assert [line.text for line in LineCutter().feed(data)] == texts


def test_a_byte_order_mark_is_no_part_of_the_first_line_and_of_others_it_is() -> None:
    mark = b"\xef\xbb\xbf"
    first, second = LineCutter().feed(mark + b"a\n" + mark + b"b\n")
    assert (first, second) == (Line(1, b"a", 1), Line(2, mark + b"b", 4))
    assert LineCutter(at_start=False).feed(mark + b"a\n") == [Line(1, mark + b"a", 4)]


def test_only_whole_lines_are_taken_and_each_byte_once() -> None:
    cutter = LineCutter()
    taken = []
    for piece in (b"a", b"b\nc", b"d\\\ne", b"\n", b"\n", b"f"):
        cutter.feed(piece)
        taken.append(cutter.take_whole())
    assert taken == [0, 3, 0, 6, 1, 0]
    assert cutter.finish() == [Line(5, b"f", 1)]
    assert (cutter.take_whole(), cutter.take_whole()) == (1, 0)


def test_the_next_number_is_that_of_the_line_that_goes_on() -> None:
    cutter = LineCutter(line=5)
    assert (cutter.number, cutter.feed(b"a\nb\\\n"), cutter.number) == (5, [Line(5, b"a", 1)], 6)
    assert (cutter.feed(b"c\n"), cutter.number) == ([Line(6, b"b\\\nc", 4)], 8)


def test_a_backslash_at_the_very_end_goes_on_in_nothing() -> None:
    cutter = LineCutter()
    assert cutter.feed(b"a\\\n") == []
    assert cutter.finish() == [Line(1, b"a\\", 2)]
    assert cutter.finish() == []


def test_between_nulls_newlines_count_and_go_on_with_nothing() -> None:
    cutter = LineCutter(by_null=True)
    assert cutter.feed(b"a\\\nb\r\0c\0") == [Line(1, b"a\\\nb\r", 5), Line(2, b"c", 1)]


def test_of_a_line_that_is_too_long_the_size_is_known() -> None:
    cutter = LineCutter()
    assert cutter.feed(b"x" * LONGEST_LINE + b"y" * 1000) == []
    [line] = cutter.feed(b"\n")
    assert (line.size, len(line.text) <= LONGEST_LINE, line.text.endswith(b"y" * 64)) == (
        LONGEST_LINE + 1000,
        True,
        True,
    )
