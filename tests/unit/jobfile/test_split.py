"""Input becomes lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.jobfile.parse import LONGEST_LINE
from simple_gpu_scheduler.jobfile.split import LineCutter


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
