"""What was printed last."""

import pytest

from simple_gpu_scheduler.output.log_file import last_lines, last_shown


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("one\ntwo\n", "two"),
        ("10%\r20%\r", "20%"),
        ("\x1b[32mgreen\x1b[0m\n\n", "green"),
        ("\x1b]0;title\x07text", "text"),
        ("", ""),
    ],
)
def test_the_last_that_a_terminal_would_show(printed: str, shown: str) -> None:
    assert last_shown(printed) == shown


def test_the_last_lines_are_those_with_something_in_them() -> None:
    assert last_lines("a\n\nb\r\nc\rd\n \n", 2) == ["b", "d"]
