"""Units, GPU ids, halting rules, outcomes: the small pure parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base import errors
from simple_gpu_scheduler.base.jobs import SUCCESS, Outcome, outcome_of
from simple_gpu_scheduler.base.units import parse_duration, parse_size, show_duration, show_size
from simple_gpu_scheduler.gpus.names import looks_like_gpus, parse_gpus
from simple_gpu_scheduler.scheduling.halt import Halt, parse_halt


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("0.5", 0.5), ("1.5h", 5400), ("0", 0)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "h", "-5", "1h 30m", "1e3", "٣"])
def test_what_is_no_duration_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write 90, 90s, 5m, 1h30m or 2d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("512M", 2**29), ("10G", 10 * 2**30), ("1.5g", 3 * 2**29), ("7GiB", 7 * 2**30), ("12", 12)),
        *(("3K", 3 * 2**10), ("2TB", 2**41)),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_what_is_no_size_is_an_error() -> None:
    with pytest.raises(ValueError, match="'10X' is not a size"):
        parse_size("10X")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (2.345, "2.3 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (303, "5 min 3 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (61, "1 min 1 s"),
        (3660, "1 h 1 min"),
        (7199, "1 h 59 min"),
        (86_399, "23 h 59 min"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
        (100_000, "1 d 3 h"),
        (172_799, "1 d 23 h"),
        (172_800, "2 d"),
    ],
)
def test_durations_are_shown_with_two_units(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 MiB"),
        (300 * 2**20, "300 MiB"),
        (1000 * 2**20 - 1, "1000 MiB"),
        (1000 * 2**20, "1.0 GiB"),
        (2**34, "16.0 GiB"),
    ],
)
def test_sizes_are_shown_as_tools_for_gpus_show_them(size: int, shown: str) -> None:
    assert show_size(size) == shown


def test_exit_codes_are_those_of_the_documentation() -> None:
    codes = (errors.SUCCEEDED, errors.SOME_DID_NOT_SUCCEED, errors.BAD_INPUT, errors.BUG, errors.BY_SIGNAL)
    assert codes == (0, 1, 2, 3, 128)
    assert errors.UserError("x").code == 2


@pytest.mark.parametrize(
    "word", ["0", "12", "0,1", "0-3", "0,2-4", "GPU-1a2b-3c", "MIG-1a2b", "0 1 2", "MIG-GPU-1a/1/0", "0:1", "all"]
)
def test_what_names_gpus_looks_like_it(word: str) -> None:
    assert looks_like_gpus(word)


@pytest.mark.parametrize("word", ["", "-v", "cmds.txt", "0.txt", "fifo", "0a", "./0", "gpu0", "--", ",", "99999"])
def test_what_does_not_name_gpus_does_not(word: str) -> None:
    assert not looks_like_gpus(word)


def test_gpus_are_expanded_in_their_order() -> None:
    assert parse_gpus(["3", "0-1", "GPU-12ab,7"]) == ("3", "0", "1", "GPU-12ab", "7")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["0", "0-2"], "GPU 0 is named twice"),
        (["3-1"], "'3-1' counts down; write 1-3"),
        (["x"], "'x' is no GPU; write an index"),
    ],
)
def test_wrong_gpus_are_an_error(words: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_gpus(words)


def test_halting_rules_are_read() -> None:
    assert parse_halt("never") is None
    assert parse_halt("soon,fail=3") == Halt(now=False, failures=3)
    assert parse_halt("now,fail=10%") == Halt(now=True, failures=10, percent=True)
    assert parse_halt("soon,fail=100%") == Halt(now=False, failures=100, percent=True)
    assert parse_halt("soon,fail=101") == Halt(now=False, failures=101)
    for wrong in ("", "soon", "now,fail=0", "later,fail=1", "soon,fail=101%", "soon,success=1", "now,fail=1 "):
        with pytest.raises(ValueError, match="is no halting rule; write never, soon,fail=3 or now,fail=10%"):
            parse_halt(wrong)


def test_a_number_of_failures_halts_at_that_number() -> None:
    assert not Halt(now=False, failures=3).is_reached(2, 100, all_read=False)
    assert Halt(now=False, failures=3).is_reached(3, 100, all_read=False)


def test_a_share_of_failures_is_of_all_jobs_and_of_three_at_least_while_more_may_come() -> None:
    tenth = Halt(now=True, failures=10, percent=True)
    assert not tenth.is_reached(1, 20, all_read=True)
    assert tenth.is_reached(2, 20, all_read=True)
    assert tenth.is_reached(1, 3, all_read=True)
    assert not tenth.is_reached(2, 5, all_read=False)
    assert tenth.is_reached(3, 5, all_read=False)
    assert not tenth.is_reached(0, 0, all_read=True)


def test_an_outcome_without_a_code_has_none() -> None:
    assert SUCCESS == ("succeeded", 0, "")
    assert Outcome("timed out") == ("timed out", 0, "")


@given(st.integers(0, 255))
def test_a_wait_status_is_an_exit_code_or_a_signal(number: int) -> None:
    assert outcome_of(number << 8) == (Outcome("failed", number) if number else SUCCESS)
    if 0 < number < 0x7F:
        assert outcome_of(number) == Outcome("killed", number)
        assert outcome_of(number | 0x80) == Outcome("killed", number)
