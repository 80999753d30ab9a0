"""Durations and sizes, read and shown."""

import pytest

from simple_gpu_scheduler.base.units import parse_duration, parse_size, show_duration, show_size


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
        ("512M", 2**29),
        ("10G", 10 * 2**30),
        ("1.5g", 3 * 2**29),
        ("7GiB", 7 * 2**30),
        ("12", 12),
        ("3K", 3 * 2**10),
        ("2TB", 2**41),
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
        (61, "1 min 1 s"),
        (303, "5 min 3 s"),
        (3600, "1 h"),
        (3660, "1 h 1 min"),
        (5400, "1 h 30 min"),
        (90_000, "1 d 1 h"),
        (7199, "1 h 59 min"),
        (86_399, "23 h 59 min"),
        (86_400, "1 d"),
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
