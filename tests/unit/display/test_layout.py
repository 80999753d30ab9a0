"""How a run is shown is decided from what was typed and what the streams are; and what the view looks like."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.display import DisplayOptions
from simple_gpu_scheduler.display.layout import Layout, OwnStreams, choose_layout
from simple_gpu_scheduler.output import OutputOptions


class Typed(NamedTuple):
    """The options that matter here."""

    progress: str | None = None
    output: str | None = None
    logs: str | None = None
    logs_failed_only: bool = False
    quiet: bool = False
    runs_nothing: bool = False


def shown(can_draw: bool, stdout: str, **typed: object) -> Layout | str:
    options = Typed(**typed)  # type: ignore[arg-type]
    display = DisplayOptions(options.progress, options.quiet)
    output = OutputOptions(options.output, options.logs, options.logs_failed_only)
    try:
        return choose_layout(display, output, OwnStreams(can_draw, stdout), runs_nothing=options.runs_nothing)
    except UserError as error:
        return str(error)


BOTH, ERRORS = (1, 2), (2,)
LIVE_FILES, PLAIN = Layout("live", "files", BOTH), Layout()


@pytest.mark.parametrize(
    ("can_draw", "stdout", "typed", "expected"),
    [
        (True, "terminal", {}, PLAIN),
        (True, "terminal", {"progress": "live"}, LIVE_FILES),
        (True, "terminal", {"logs": "x"}, LIVE_FILES),
        (True, "terminal", {"output": "files"}, LIVE_FILES),
        (True, "pipe", {"output": "files"}, LIVE_FILES),
        (True, "terminal", {"logs_failed_only": True}, LIVE_FILES),
        (True, "terminal", {"output": "files", "progress": "plain"}, Layout("plain", "files", BOTH)),
        (True, "terminal", {"output": "files", "progress": "none"}, Layout("none", "files", BOTH)),
        (True, "terminal", {"output": "files", "quiet": True}, Layout("plain", "files", BOTH)),
        (True, "terminal", {"output": "tag"}, Layout("plain", "tag", BOTH)),
        (True, "terminal", {"output": "inherit"}, PLAIN),
        (True, "elsewhere", {}, Layout("live", "inherit", ERRORS)),
        (True, "elsewhere", {"output": "tag"}, Layout("live", "tag", BOTH)),
        (True, "elsewhere", {"output": "group", "logs": "x"}, Layout("live", "group", BOTH)),
        (True, "pipe", {}, PLAIN),
        (True, "pipe", {"progress": "live"}, Layout("live", "inherit", ERRORS)),
        (True, "pipe", {"output": "group"}, Layout("plain", "group", BOTH)),
        (True, "pipe", {"output": "group", "progress": "live"}, Layout("live", "group", BOTH)),
        (False, "elsewhere", {}, PLAIN),
        (False, "terminal", {"progress": "live"}, PLAIN),
        (False, "pipe", {"progress": "none"}, Layout("none")),
        (False, "pipe", {"logs": "x"}, Layout("plain", "files", BOTH)),
        (False, "terminal", {"progress": "live", "output": "inherit"}, PLAIN),
        (True, "elsewhere", {"runs_nothing": True, "logs": "x", "progress": "live"}, PLAIN),
    ],
    ids=str,
)
def test_what_is_typed_and_where_it_goes_decide(can_draw: bool, stdout: str, typed: dict, expected: Layout) -> None:
    assert shown(can_draw, stdout, **typed) == expected


@pytest.mark.parametrize("output", ["inherit", "group", "tag"])
def test_a_view_and_the_output_of_jobs_do_not_go_to_the_same_terminal(output: str) -> None:
    assert "cannot share a terminal" in str(shown(True, "terminal", progress="live", output=output))


@given(
    st.booleans(),
    st.sampled_from(["terminal", "pipe", "elsewhere"]),
    st.sampled_from([None, "live", "plain", "none"]),
    st.sampled_from([None, "inherit", "group", "tag", "files"]),
    st.booleans(),
    st.booleans(),
)
def test_nothing_ever_prints_over_a_view(
    can_draw: bool, stdout: str, progress: str | None, output: str | None, has_logs: bool, quiet: bool
) -> None:
    found = shown(can_draw, stdout, progress=progress, output=output, logs="x" if has_logs else None, quiet=quiet)
    if isinstance(found, Layout) and found.progress == "live":
        assert can_draw
        assert 2 in found.logged
        assert stdout != "terminal" or (found.output == "files" and 1 in found.logged)
