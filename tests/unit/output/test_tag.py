"""Lines with a tag."""

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.output.tag import tagged


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"").replace(b"\r", b"")), min_size=1))
def test_each_line_gets_its_tag_and_nothing_else(lines: list[bytes]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    assert tagged(text, b"[7] ") == b"".join(b"[7] " + line + b"\n" for line in lines)
