"""The lines of a journal -> records, whatever has happened to the file: a torn end, or a cut in the middle.

It does not know what the records mean. Pure.
"""

from simple_gpu_scheduler.base import quickjson
from simple_gpu_scheduler.base.values import Any, Iterator, NamedTuple

_BEGIN = b'{"event":"'
_AT_ONCE = 2_000

Record = dict[str, Any]


class Contents(NamedTuple):
    """The records of a journal, the number of unreadable pieces, and how much of the data is whole lines."""

    records: list[Record]
    unreadable: int
    size: int


def read_records(data: bytes) -> Contents:
    """All records; after the last newline is a line that is being written, or was never finished."""
    size = data.rfind(b"\n") + 1
    lines = data[:size].splitlines()
    records: list[Record] = []
    unreadable = 0
    for at in range(0, len(lines), _AT_ONCE):
        some = lines[at : at + _AT_ONCE]
        try:
            # Parsing many lines in one call takes half the time.
            found = quickjson.loads(b"[" + b",".join(some) + b"]")
            whole = len(found) == len(some) and all(_is_record(each) for each in found)
        except (ValueError, RecursionError):
            whole = False
        if not whole:
            found, bad = _read_one_by_one(some)
            unreadable += bad
        records += found
    return Contents(records, unreadable, size)


def _read_one_by_one(lines: list[bytes]) -> tuple[list[Record], int]:
    found: list[Record] = []
    unreadable = 0
    for line in lines:
        for piece in _pieces(line):
            try:
                record = quickjson.loads(piece)
            except (ValueError, RecursionError):
                record = None
            if _is_record(record):
                found.append(record)
            else:
                unreadable += 1
    return found, unreadable


def _pieces(line: bytes) -> Iterator[bytes]:
    """Split a line where another starts inside it: the first was not finished."""
    first, *others = line.split(_BEGIN)
    if first.strip():
        yield first
    for other in others:
        yield _BEGIN + other


def _is_record(record: object) -> bool:
    return isinstance(record, dict) and isinstance(record.get("event"), str)
