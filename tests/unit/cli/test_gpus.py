"""The table of `gpus`, and what it leaves out where there is too little room."""

from simple_gpu_scheduler.cli.commands.gpus import lines_of
from simple_gpu_scheduler.gpus.survey import HEADINGS

NAME = "NVIDIA A100-SXM4-80GB"
FREE = ("0", NAME, "0.0 / 80.0 GiB", "0 %", "30 °C", "60 / 400 W", "free", "-")
USED = ("1", NAME, "9.0 / 80.0 GiB", "50 %", "66 °C", "312 / 400 W", "in use", "alice python 9.0 GiB for 4 min 26 s")
LEASED = (*USED[:6], "leased by bob (pid 4242, job 4 of run 5e9355) for 3 h", "bob python 9.0 GiB for 3 h")


def table(*rows: tuple[str, ...], width: int | None = 80) -> list[list[str]]:
    lines = lines_of([HEADINGS, *rows], width)
    assert width is None or all(len(line) <= width for line in lines)
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]


def test_in_a_pipe_and_in_a_wide_terminal_everything_is_shown() -> None:
    for width in (None, 200):
        assert table(FREE, USED, LEASED, width=width) == [list(row) for row in (HEADINGS, FREE, USED, LEASED)]


def test_at_80_columns_an_idle_gpu_loses_only_the_maker_and_the_limit_of_its_power() -> None:
    assert table(FREE) == [list(HEADINGS), ["0", "A100-SXM4-80GB", *FREE[2:5], "60 W", "free", "-"]]


def test_at_80_columns_who_uses_a_gpu_has_a_third_of_the_line() -> None:
    heading, free, used = table(FREE, USED)
    assert heading == ["GPU", "MEMORY", "UTIL", "TEMP", "POWER", "STATE", "USED BY"]
    assert free == ["0", *FREE[2:5], "60 W", "free", "-"]
    assert used[-1].startswith("alice python 9.0 GiB for")
    heading, _, used, leased = table(FREE, USED, LEASED)
    assert heading == ["GPU", "MEMORY", "UTIL", "STATE", "USED BY"]
    assert used[-2:] == ["in use", "alice python 9.0 GiB for…"]
    assert leased[-2:] == ["leased by bob (pid 4242, …", "bob python 9.0 GiB for 3 h"[:24] + "…"]


def test_names_are_kept_longer_if_they_tell_gpus_apart() -> None:
    heading, *_ = table(FREE, (USED[0], "NVIDIA L40S", *USED[2:]))
    assert heading == ["GPU", "NAME", "MEMORY", "UTIL", "STATE", "USED BY"]


def test_any_width_is_kept_to() -> None:
    for width in range(1, 100):
        table(FREE, USED, LEASED, width=width)
