"""Policies as people type them."""

import pytest

from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.policies.names import names, parse_ageing, parse_policy


def never_read(path: str) -> str:
    raise AssertionError(path)


def test_each_name_is_understood_and_listed() -> None:
    for name in POLICIES:
        assert parse_policy(name, never_read).name == name
    assert names() == "fifo, priority, aged, sjf, hrrn, fair, lpt, round-robin, learned:FILE"


@pytest.mark.parametrize(("text", "ageing"), [("0", 0), ("0.5", 0.5), ("1e3", 1000)])
def test_ageing_is_a_number_of_0_or_more(text: str, ageing: float) -> None:
    assert parse_ageing(text) == ageing


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "much"])
def test_other_ageing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number of 0 or more; 1 is usual, 0 ignores lengths"):
        parse_ageing(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fastest", "unknown policy 'fastest'; the policies are fifo, "),
        ("sjf:2", "'sjf:2': only aged takes a number, as in aged:0.5"),
        ("aged:x", "'x' is not a number of 0 or more"),
        ("learned", "learned needs a weights file, as in learned:weights.json"),
    ],
)
def test_what_is_wrong_is_said(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + sentence):
        parse_policy(text, never_read)
