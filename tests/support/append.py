"""Lines, and what becomes of them in a file that is appended to."""

from pathlib import Path

from simple_gpu_scheduler.events.publisher import SinkTroubleError
from simple_gpu_scheduler.journal.append import Appender, PatientAppender

LINES = [b'{"event":"%05d","x":"%s"}\n' % (number, b"y" * (number % 90)) for number in range(600)]


def whole_lines(path: Path) -> list[bytes]:
    """The lines, without what was torn and written again."""
    return [line for line in path.read_bytes().splitlines(keepends=True) if line in set(LINES)]


def append_all(appender: Appender | PatientAppender, lines: list[bytes]) -> list[str]:
    """What it says meanwhile."""
    said = []
    for line in lines:
        try:
            appender.append(line)
        except SinkTroubleError as trouble:
            said.append(str(trouble))
    return said
