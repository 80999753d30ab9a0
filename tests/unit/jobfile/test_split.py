"""Input becomes lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.jobfile.parse import LONGEST_LINE
from simple_gpu_scheduler.jobfile.split import Line, LineCutter, count_lines


def cut(data: bytes, *sizes: int, by_null: bool = False) -> list[tuple[int, bytes]]:
    cutter = LineCutter(by_null=by_null)
    lines = []
    for size in sizes:
        lines += cutter.feed(data[:size])
        data = data[size:]
    lines += cutter.feed(data) + cutter.finish()
    assert all(size == len(text) for _, text, size in lines)
    return [(number, text) for number, text, _ in lines]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\nb\n", [(1, b"a"), (2, b"b")]),
        (b"a\nb", [(1, b"a"), (2, b"b")]),
        (b"\n\na\n", [(1, b""), (2, b""), (3, b"a")]),
        (b"a\r\nb\r\n", [(1, b"a"), (2, b"b")]),
        (b"a\rb\n", [(1, b"a\rb")]),
        (b"a \\\nb\nc\n", [(1, b"a \\\nb"), (3, b"c")]),
        (b"a \\\r\nb\r\n", [(1, b"a \\\nb")]),
        (b"a \\\\\nb\n", [(1, b"a \\\\"), (2, b"b")]),
        (b"a \\\\\\\nb\n", [(1, b"a \\\\\\\nb")]),
        (b"a \\\nb \\\nc", [(1, b"a \\\nb \\\nc")]),
        (b"a\\\n#b \\\n c\n", [(1, b"a\\\n#b \\\n c")]),
        (b"a \\\n#b \\\n c\n", [(1, b"a \\\n#b \\"), (3, b" c")]),
        (b"echo 'q \\\n# c' \\\n d\n", [(1, b"echo 'q \\\n# c' \\\n d")]),
        (b"echo $'q\\' \\\n# c' \\\n d\n", [(1, b"echo $'q\\' \\\n# c' \\\n d")]),
        (b"a \\", [(1, b"a \\")]),
        (b"a \\\n", [(1, b"a \\")]),
        (b"# comment \\\nb\n", [(1, b"# comment \\"), (2, b"b")]),
        (b"a # comment \\\nb\n", [(1, b"a # comment \\"), (2, b"b")]),
        (b"\xef\xbb\xbfa\nb\n", [(1, b"a"), (2, b"b")]),
    ],
)
def test_lines_end_and_continue_as_in_a_shell_script(data: bytes, lines: list[tuple[int, bytes]]) -> None:
    assert cut(data) == lines


MARK = b"# submit 0123456789abcdef\n"


def test_the_mark_that_submit_writes_has_no_line_number() -> None:
    """What only looks like it has one, as every comment."""
    data = MARK + b"a\n" + MARK + b"b \\\n" + MARK + b"# submit 0123\n #" + MARK + b"c" + MARK + b"d\n"
    cutter = LineCutter()
    lines = [(line.number, line.text) for line in cutter.feed(data) if line.text + b"\n" != MARK]
    assert [number for number, _ in lines] == [1, 2, 3, 4, 5, 6]
    assert lines[-1] == (6, b"d")
    assert (count_lines(data), cutter.number) == (6, 7)


def test_what_is_submitted_does_not_continue_the_line_of_another_writer() -> None:
    assert cut(b"a \\\n" + MARK + b"b\n") == [(1, b"a \\"), (2, b"b")]


@given(st.lists(st.sampled_from([MARK, b"a\n", b"\n", b"a", b"#", b"\\\n", MARK[:9]]), max_size=9))
def test_lines_are_counted_as_they_are_numbered(parts: list[bytes]) -> None:
    cutter = LineCutter()
    cutter.feed(b"".join(parts) + b"\n")
    cutter.finish()
    assert count_lines(b"".join(parts) + b"\n") + 1 == cutter.number


def test_with_null_jobs_hold_newlines_and_keep_every_byte() -> None:
    assert cut(b"a\\\nb\r\n\0c\0", by_null=True) == [(1, b"a\\\nb\r\n"), (3, b"c")]
    assert cut(b"a\0b", by_null=True) == [(1, b"a"), (1, b"b")]


@given(st.binary(), st.lists(st.integers(0, 20)), st.booleans())
def test_it_does_not_matter_how_the_input_is_cut(data: bytes, sizes: list[int], by_null: bool) -> None:
    if not data.startswith(b"\xef"):  # a mark that is itself cut in two is not looked for
        assert cut(data, *sizes, by_null=by_null) == cut(data, by_null=by_null)


@given(st.lists(st.binary().filter(lambda line: b"\0" not in line)))
def test_every_byte_between_nulls_comes_through(jobs: list[bytes]) -> None:
    if not jobs or not jobs[0].startswith(b"\xef"):
        assert [text for _, text in cut(b"".join(job + b"\0" for job in jobs), by_null=True)] == jobs


def test_an_endless_line_is_not_kept_whole() -> None:
    cutter = LineCutter()
    for _ in range(1000):
        assert cutter.feed(b"x" * 65536) == []
    [line] = cutter.feed(b"\n")
    assert (line.number, line.size) == (1, 65_536_000)
    assert len(line.text) == LONGEST_LINE


def test_a_line_that_is_too_long_still_continues_in_the_next() -> None:
    cutter = LineCutter()
    lines = cutter.feed(b"x" * 300_000 + b" \\\ntail\nnext\n")
    assert [(line.number, line.size, line.text[-4:]) for line in lines] == [(1, 300_007, b"xxxx"), (3, 4, b"next")]
    cutter = LineCutter()
    for part in (b"x" * 100_000, b"x" * 200_000, b" \\", b"\nta"):
        assert cutter.feed(part) == []
    assert [line.size for line in cutter.feed(b"il\nnext\n")] == [300_007, 4]


def test_lines_that_continue_without_end_are_one_and_not_kept_whole() -> None:
    cutter = LineCutter()
    assert all(cutter.feed(b"x y#'z'\\\n" * 1000) == [] for _ in range(300))
    [line] = cutter.feed(b"end\n")
    assert line.number == 1
    assert len(line.text) <= LONGEST_LINE < line.size


def test_the_size_of_a_line_that_continues_counts_the_newlines_in_it() -> None:
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
def test_a_line_continues_after_an_unescaped_backslash_outside_a_comment(data: bytes, texts: list[bytes]) -> None:
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


def test_the_next_number_is_that_of_the_line_that_continues() -> None:
    cutter = LineCutter(line=5)
    assert (cutter.number, cutter.feed(b"a\nb\\\n"), cutter.number) == (5, [Line(5, b"a", 1)], 6)
    assert (cutter.feed(b"c\n"), cutter.number) == ([Line(6, b"b\\\nc", 4)], 8)


def test_a_backslash_at_the_very_end_continues_nothing() -> None:
    cutter = LineCutter()
    assert cutter.feed(b"a\\\n") == []
    assert cutter.finish() == [Line(1, b"a\\", 2)]
    assert cutter.finish() == []


def test_between_nulls_newlines_count_and_continue_nothing() -> None:
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
