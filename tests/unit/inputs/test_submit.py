"""Lines are put together to be written at once."""

import select

from simple_gpu_scheduler.inputs.submit import WholeLine, _pieces


def test_short_lines_are_written_so_that_no_other_writer_comes_between() -> None:
    lines = [WholeLine(number, b"%d" % number * (number % 50 + 1) + b"\n") for number in range(1, 3000)]
    lines.insert(700, WholeLine(5000, b"x" * 9000 + b"\n"))
    pieces = list(_pieces(lines))
    assert b"".join(piece.data for piece in pieces) == b"".join(line.data for line in lines)
    assert [piece.data for piece in pieces if len(piece.data) > select.PIPE_BUF] == [b"x" * 9000 + b"\n"]
    assert all(piece.data.endswith(b"\n") for piece in pieces)
    assert len(pieces) < 100
    begins = {line.number: line.data for line in lines}
    assert all(piece.data.startswith(begins[piece.number]) for piece in pieces)
