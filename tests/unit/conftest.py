"""Tests of this folder run in their own process, start no other and speak with no other machine."""

import socket
import sys
from collections.abc import Iterator

import pytest

STARTS_A_PROGRAM = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}

_is_watching = False


def _watch(event: str, args: tuple[object, ...]) -> None:
    """A hook like this cannot be taken away again, so it does nothing while other tests run."""
    if not _is_watching:
        return
    if event in STARTS_A_PROGRAM and not (event == "subprocess.Popen" and str(args[0]).endswith("fc-list")):
        # matplotlib asks fc-list for fonts when it is imported for the first time on a machine
        pytest.fail(f"a test of tests/unit starts a program ({event}): put it into tests/program")
    if event == "socket.connect" and getattr(args[0], "family", None) != socket.AF_UNIX:
        pytest.fail(f"a test of tests/unit opens a connection to {args[1]}: put it into tests/program")


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def _starts_no_program() -> Iterator[None]:
    global _is_watching  # noqa: PLW0603 a hook has no other way to know
    _is_watching = True
    yield
    _is_watching = False
