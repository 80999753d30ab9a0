"""The table of `simulate`."""

import re

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.simulation.measures import Measures, Spread
from simple_gpu_scheduler.simulation.text import heading, row


@given(st.floats(0, 8e6))
def test_a_row_words_durations_as_everywhere_and_stands_below_its_headings(seconds: float) -> None:
    spread = Spread(*[seconds] * 5)
    line = row("round-robin", Measures(1, spread, spread, Spread(*[1230.0] * 5), seconds, 1.0, 0.333))
    number = r" +\d+(?:\.\d)? (?:s|min|h|d)"
    assert re.fullmatch(rf"round-robin(?:{number}){{8}} +1,230 +1,230{number} 100.0 % 0\.33", line), line
    assert len(line) == len(heading()[1])
