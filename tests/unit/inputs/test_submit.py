"""Lines are put together to be written at once."""

import select

from simple_gpu_scheduler.inputs.submit import WholeLine, _pieces


def test_short_lines_are_written_so_that_no_other_writer_comes_between() -> None:
    lines = [WholeLine(number, b"%d" % number * (number % 50 + 1) + b"\n") for number in range(1, 3000)]
    lines.insert(700, WholeLine(5000, b"x" * 9000 + b"\n"))
    pieces = list(_pieces(lines))
    assert [line for piece in pieces for line in piece] == lines
    sizes = [sum(len(line.data) for line in piece) for piece in pieces]
    assert [piece for piece, size in zip(pieces, sizes, strict=True) if size > select.PIPE_BUF] == [[lines[700]]]
    assert len(pieces) < 100
    assert max(sum(len(line.data) for line in piece) for piece in _pieces(lines, 4000) if len(piece) > 1) <= 96
