"""Durations and sizes, read and shown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Patience
from simple_gpu_scheduler.base.units import (
    axis_unit,
    parse_duration,
    parse_patience,
    parse_size,
    show_bytes,
    show_duration,
    show_energy,
    show_in_one_unit,
    show_percent,
    show_share,
    show_size,
    write_patience,
)


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
    ("text", "patience"),
    [("30m", Patience(1800)), ("1h30m:end", Patience(5400, ends=True)), ("0", Patience(0)), ("1", Patience(1))],
)
def test_for_how_long_a_job_may_do_nothing_is_read(text: str, patience: Patience) -> None:
    assert parse_patience(text) == patience


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("30m:kill", "'30m:kill' is not understood; write 30m to be warned, or 30m:end to end the job"),
        ("30m:", "'30m:' is not understood; write 30m to be warned, or 30m:end to end the job"),
        ("end", "'end' is not a duration; write 90, 90s, 5m, 1h30m or 2d"),
        (":end", "'' is not a duration; write 90, 90s, 5m, 1h30m or 2d"),
        ("0.5s", "'0.5s' is too short: GPUs are read once a second; write 1s or more, or 0 for no limit"),
    ],
)
def test_what_says_nothing_of_how_long_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_patience(text)


@given(st.floats(1, 1e9) | st.integers(0, 10**9).map(float), st.booleans())
def test_what_is_written_of_it_is_always_read_as_the_same(seconds: float, ends: bool) -> None:
    patience = Patience(float(f"{seconds:.6f}"), ends)
    assert parse_patience(write_patience(patience)) == patience


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512M", 2**29),
        ("10G", 10 * 2**30),
        ("1.5g", 3 * 2**29),
        ("7GiB", 7 * 2**30),
        ("0", 0),
        ("12B", 12),
        ("1048576", 2**20),
        ("10737418240", 10 * 2**30),
        ("3K", 3 * 2**10),
        ("2TB", 2**41),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "way_out"),
    [("10", "10G"), ("1.5", "1.5G"), ("80", "80M or 80G"), ("8000", "8000M"), ("1048575", "1048575M")],
)
def test_a_few_bytes_without_a_unit_are_asked_about(text: str, way_out: str) -> None:
    with pytest.raises(ValueError, match=rf"^{text} bytes\? write {way_out}$"):
        parse_size(text)


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


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1, "1 KiB"),
        (4096, "4 KiB"),
        (4097, "5 KiB"),
        (3 * 2**20, "3 MiB"),
        (12 * 2**30, "12.0 GiB"),
        (1187 * 2**30, "1.16 TiB"),
    ],
)
def test_what_is_small_on_a_disk_is_shown_too(size: int, shown: str) -> None:
    assert show_bytes(size) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (119, "119 s"),
        (120, "2.0 min"),
        (5999, "100.0 min"),
        (6000, "1.7 h"),
        (172_799, "48.0 h"),
        (172_800, "2.0 d"),
        (8_640_000, "100.0 d"),
    ],
)
def test_durations_in_a_wide_table_have_one_unit(seconds: float, shown: str) -> None:
    assert show_in_one_unit(seconds) == shown


def test_in_a_column_all_have_the_unit_of_the_largest() -> None:
    assert [show_in_one_unit(each, 7200) for each in (7200, 600, 100, 0)] == ["2.0 h", "0.2 h", "<0.1 h", "0.0 h"]
    assert [show_in_one_unit(each, 100) for each in (100, 3)] == ["100 s", "3.0 s"]
    assert [show_energy(each, 5e6) for each in (5e6, 36_000, 9, 0)] == ["1.39 kWh", "0.01 kWh", "<0.01 kWh", "0.00 kWh"]
    assert [show_energy(each, 5e5) for each in (5e5, 36_000, 9)] == ["139 Wh", "10 Wh", "<1 Wh"]


@pytest.mark.parametrize(
    ("used", "total", "shown"),
    [
        (0, 80 * 2**30, "0.0 / 80.0 GiB"),
        (11.2 * 2**30, 80 * 2**30, "11.2 / 80.0 GiB"),
        (300 * 2**20, 2**30, "0.3 / 1.0 GiB"),
        (300 * 2**20, 512 * 2**20, "300 / 512 MiB"),
    ],
)
def test_what_is_used_of_a_size_has_its_unit(used: float, total: float, shown: str) -> None:
    assert show_share(used, total) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0, "0 %"), (0.001, "<1 %"), (0.01, "1 %"), (0.994, "99 %"), (0.999, ">99 %"), (1, "100 %")]
)
def test_a_share_is_not_rounded_to_all_or_nothing(share: float, shown: str) -> None:
    assert show_percent(share) == shown


def test_an_axis_has_a_unit_of_which_it_shows_several() -> None:
    assert [axis_unit(each) for each in (0, 299, 300, 10_800, 259_200)] == [
        (1, "s"), (1, "s"), (60, "min"), (3600, "h"), (86_400, "d")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("joules", "shown"),
    [(0, "0 J"), (3599, "3599 J"), (3600, "1.00 Wh"), (36_360, "10.1 Wh"), (3.6e5, "100 Wh"), (3.6e6, "1.00 kWh"),
     (1.5e8, "41.7 kWh"), (3.6e9, "1000 kWh")],
)  # fmt: skip
def test_energy_is_in_the_unit_that_fits(joules: float, shown: str) -> None:
    assert show_energy(joules) == shown
