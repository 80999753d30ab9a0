"""How jobs and outcomes are worded, and what a terminal is kept from."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.gpu_waits import Wait, Waiting
from simple_gpu_scheduler.base.jobs import SUCCESS, Job, Outcome, Place
from simple_gpu_scheduler.base.text import (
    BLOCKS,
    safe,
    show_command,
    show_curve,
    show_gpus,
    show_job,
    show_moment,
    show_outcome,
    show_waits,
    visible,
)


def test_a_command_is_shown_whole_up_to_a_thousand_bytes() -> None:
    assert show_command(b" " + b"a" * 998 + b"\n") == "a" * 998
    assert show_command(b"a" * 1000) == "a" * 1000
    assert show_command(b"a" * 1001) == "a" * 1000 + "…"
    assert show_command(b"a" * 999 + b"\xc3\xa4") == "a" * 999 + "\\xc3…"


def test_what_moves_the_cursor_or_turns_text_round_is_written_out() -> None:
    assert safe("naïve 漢字") == "naïve 漢字"
    assert safe("a\x1b[31m\n\x9b\u202e\u2066") == r"a\x1b[31m\n\x9b\u202e\u2066"


def test_bytes_that_are_not_utf_8_are_written_out() -> None:
    assert visible("naïve " + b"\xff\xe4".decode("utf-8", "surrogateescape")) == r"naïve \xff\xe4"


@pytest.mark.parametrize(
    ("gpus", "shown"), [((), "cpu"), (("3",), "gpu 3"), (("0", "1"), "gpus 0,1"), (("all",), "all GPUs")]
)
def test_where_an_attempt_runs_is_shown(gpus: tuple[str, ...], shown: str) -> None:
    assert show_gpus(gpus) == shown


def test_a_job_is_shown_with_its_name_and_its_place() -> None:
    assert show_job(Job(3, b"true", Place(7))) == "job 3 (line 7)"
    assert show_job(Job(3, b"true", Place(7, "more.txt"), name="big")) == 'job 3 "big" (line 7 of more.txt)'


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (SUCCESS, "succeeded"),
        (Outcome("timed out"), "timed out"),
        (Outcome("stalled", reason="its GPU was at 0 % for 15 min"), "stalled (its GPU was at 0 % for 15 min)"),
        (Outcome("failed", 1), "failed with exit code 1"),
        (Outcome("failed", 128), "failed with exit code 128"),
        (Outcome("failed", 129), "failed with exit code 129 (SIGHUP)"),
        (Outcome("failed", 137), "failed with exit code 137 (SIGKILL)"),
        (Outcome("failed", 159), "failed with exit code 159 (SIGSYS)"),
        (Outcome("failed", 160), "failed with exit code 160"),
        (Outcome("killed", 9), "was killed by SIGKILL"),
        (Outcome("killed", 40), "was killed by signal 40"),
        (Outcome("not started", reason="there is no such file"), "was not started: there is no such file"),
    ],
)
def test_an_outcome_is_shown_with_what_it_means(outcome: Outcome, shown: str) -> None:
    assert show_outcome(outcome) == shown


def test_a_way_to_share_a_gpu_is_mentioned_only_where_the_processes_are_the_users_own() -> None:
    leased = Wait("2", "leased by bob\x1b", "bob")
    theirs = Wait("1", "alice python 11.2 GiB", "alice")
    mine = Wait("0", "eve python 11.2 GiB", "eve", is_mine=True)
    assert show_waits([theirs, leased]) == r"gpu 1: alice python 11.2 GiB · gpu 2: leased by bob\x1b"
    assert show_waits([mine, theirs], "--now") == (
        "gpu 0: eve python 11.2 GiB (yours; to share the GPU: --now) · gpu 1: alice python 11.2 GiB"
    )


def test_a_moment_is_shown_by_the_clock_on_the_wall() -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", show_moment(1_700_000_000.0))


BOB = (Wait("0", "leased by bob", "bob"),)


class TestWhyJobsWait:
    def test_is_reported_once_when_it_has_lasted_for_a_second(self) -> None:
        waiting = Waiting()
        assert waiting.say(BOB, 10) is None
        assert waiting.say(BOB, 10.9) is None
        assert waiting.say(BOB, 11) == BOB
        assert waiting.say(BOB, 20) is None

    def test_is_over_when_that_has_lasted_too(self) -> None:
        waiting = Waiting(0)
        assert waiting.say(BOB, 1) == BOB
        waiting = Waiting()
        waiting.say(BOB, 10)
        assert waiting.say(BOB, 12) == BOB
        assert waiting.say([], 13) is None
        assert waiting.say(BOB, 13.5) is None
        assert waiting.say([], 14) is None
        assert waiting.say([], 15) == []

    def test_is_the_same_while_only_its_words_change(self) -> None:
        waiting = Waiting()
        waiting.say(BOB, 0)
        assert waiting.say([Wait("0", "leased by bob for 1 s", "bob")], 1)
        assert waiting.say([Wait("0", "leased by bob for 3 s", "bob")], 3) is None
        assert waiting.say([Wait("0", "leased by eve", "eve")], 4) is None
        assert waiting.say([Wait("0", "leased by eve", "eve")], 5)


@given(st.lists(st.none() | st.floats(-1e15, 1e15)))
def test_a_small_curve_has_one_block_for_each_value(values: list[float | None]) -> None:
    drawn = show_curve(values)
    assert len(drawn) == len(values)
    for value, block in zip(values, drawn, strict=True):
        assert (block == " ") == (value is None)
        assert block in BLOCKS or value is None
    assert show_curve([0, 100, 50]) == "▁█▅"
