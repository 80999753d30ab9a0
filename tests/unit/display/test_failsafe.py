"""What is seen of a run whose display fails."""

import pytest

from simple_gpu_scheduler.display.failsafe import Failsafe
from simple_gpu_scheduler.display.lines import EventWords
from simple_gpu_scheduler.events import Event, Noticed, RunEnded
from simple_gpu_scheduler.events.publisher import Publisher

ENDED = RunEnded(101, 0, 0, 0, 3.0, all_read=True)


class Flaky:
    """Shows nothing for as long as it fails."""

    def __init__(self, *, fails: bool = True) -> None:
        self.fails = fails
        self.shown: list[Event] = []

    def take(self, event: Event, /) -> None:
        if self.fails:
            raise RuntimeError("can't start new thread")
        self.shown.append(event)

    def close(self) -> None:
        if self.fails:
            raise RuntimeError("can't start new thread")


def test_what_a_display_cannot_show_goes_to_stderr_with_the_reason_and_is_no_failure(
    capfd: pytest.CaptureFixture[str],
) -> None:
    display = Flaky()
    publisher = Publisher([Failsafe(display, EventWords())])
    publisher.publish(Noticed("one"))
    publisher.publish(Noticed("two"))
    display.fails = False
    publisher.publish(Noticed("three"))
    display.fails = True
    publisher.publish(ENDED)
    summary = "101 succeeded, 0 failed, 0 timed out, 0 not started in 3.0 s\n"
    why = "the display failed: can't start new thread"
    assert capfd.readouterr().err == f"one\n{why}; jobs continue, and what it cannot show is printed\ntwo\n{summary}"
    assert display.shown == [Noticed("three")]
    publisher.close()
    assert capfd.readouterr().err == f"{why}\n{summary}"
    assert publisher.ledger.exit_code(0) == 0


def test_a_sentence_that_cannot_be_made_hides_no_other(capfd: pytest.CaptureFixture[str]) -> None:
    class Wordless(EventWords):
        def line(self, event: Event) -> str:
            if event == Noticed("one"):
                raise ValueError("no words")
            return super().line(event)

    publisher = Publisher([Failsafe(Flaky(), Wordless())])
    publisher.publish(Noticed("one"))
    publisher.publish(Noticed("two"))
    assert capfd.readouterr().err.endswith("is printed\ntwo\n")
