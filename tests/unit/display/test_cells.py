"""Text is as wide as rich says."""

import rich.cells
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.display.cells import cell_len, set_cell_size


@given(st.text())
def test_is_as_wide_as_rich_says(text):
    assert cell_len(text) == rich.cells.cell_len(text)


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_as_wide_as_rich_says(text):
    assert cell_len(text) == rich.cells.cell_len(text)


def test_a_wide_character_counts_as_two():
    assert cell_len("ab") == 2
    assert cell_len("日本") == 4
    assert set_cell_size("日本", 3) == "日 "
    assert set_cell_size("ab", 3) == "ab "
