"""What a notifier gets."""

import pytest

from simple_gpu_scheduler.notify import parse_triggers


class TestTheWordsOfNotifyOn:
    def test_are_one_or_several_with_commas(self) -> None:
        assert parse_triggers("end") == {"end"}
        assert parse_triggers("end, fail") == {"end", "fail"}

    @pytest.mark.parametrize("text", ["", "often", "end,", "END"])
    def test_are_none_but_three(self, text: str) -> None:
        with pytest.raises(ValueError, match="is not one of end, fail, each"):
            parse_triggers(text)
