"""Which numbers a run gives to lines that were just submitted to it, by its journal.

A run counts lines, and records each job with the number of its line. So the question is where the lines are in what the
run reads. In a file, that is known once they are written. A pipe has no positions, but the run copies it to a file, and
that is searched for the comment written before the lines. Nothing is guessed: equal lines are distinguished, and a line
that is not recorded in time has no number.
"""

import os
import time

from simple_gpu_scheduler.base.values import Iterable, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.jobfile.split import count_lines
from simple_gpu_scheduler.journal import files, find
from simple_gpu_scheduler.journal.read import Record, read_records

from .submit import WholeLine, Written

PATIENCE = 3.0
_PAUSE = 0.01


class Receiver(NamedTuple):
    """An active run that reads a queue; `stream` is the file that has all its bytes.

    `source` is the queue's name in the records of its lines. Nothing before `begin` in the journal and `start` in the
    stream is about lines that are written later.
    """

    journal: str
    stream: str
    source: str
    begin: int
    start: int

    @property
    def run(self) -> str:
        """Its ID."""
        return files.run_of(os.path.realpath(self.journal))


class Numbered(NamedTuple):
    """The number of a line, and why it is no job if it was refused."""

    job: int
    problem: str = ""


def find_receiver(path: str, journals: Iterable[str]) -> Receiver | None:
    """The first active run of these that reads this queue."""
    real = os.path.realpath(path)
    active = (journal for journal in journals if files.is_alive(journal))
    return next((found for journal in active if (found := _receiver(journal, real))), None)


def _receiver(journal: str, path: str) -> Receiver | None:
    for each in find.began(journal, newest=True).get("inputs", ()):
        spool, kind = each.get("spool"), each.get("kind")
        stream = path if kind == "follow" else f"{files.stem(journal)}.{spool}" if kind == "fifo" and spool else ""
        if stream and each.get("path") == path:
            try:
                return Receiver(
                    journal, stream, each.get("name", ""), os.path.getsize(journal), os.path.getsize(stream)
                )
            except OSError:
                return None
    return None


def numbers(receiver: Receiver, written: Sequence[Written], jobs: int) -> dict[int, Numbered]:
    """The numbers of those lines that the run has read, by their numbers in the text that was submitted.

    It waits until that is known of so many lines, but not for long: the run may be suspended, or have enough jobs.
    """
    until = time.monotonic() + PATIENCE
    places: dict[int, WholeLine] = {}
    records: dict[int, list[Record]] = {}
    unplaced, offset = list(written), receiver.begin
    while True:
        is_last = time.monotonic() >= until
        try:
            found = [(each, _place(receiver, each)) for each in unplaced]
            offset = _read_on(receiver, offset, records)
        except OSError:  # the journal or the file was removed
            return {}
        unplaced = [each for each, line in found if not line]
        for each, line in found:
            if line:
                places |= _lines(each, line)
        result = _match(places, records)
        if is_last or len(result) >= jobs:
            return result
        time.sleep(_PAUSE)


def _place(receiver: Receiver, written: Written) -> int:
    """The number, in the stream, of the first line; 0 if it is not there yet."""
    with open(receiver.stream, "rb") as file:
        offset = written.offset
        if written.mark:
            file.seek(receiver.start)
            at = file.read().find(written.mark)
            if at < 0:
                return 0
            offset = receiver.start + at + len(written.mark)
            file.seek(0)
        return count_lines(file.read(offset)) + 1


def _lines(written: Written, line: int) -> dict[int, WholeLine]:
    lines = {}
    for each in written.lines:
        lines[line] = each
        line += each.data.count(b"\n")
    return lines


def _read_on(receiver: Receiver, offset: int, records: dict[int, list[Record]]) -> int:
    """Take in what is new in the journal; where it ends."""
    with open(receiver.journal, "rb") as file:
        file.seek(offset)
        contents = read_records(file.read())
    for record in contents.records:
        if record["event"] in ("job read", "line refused") and record.get("source", "") == receiver.source:
            records.setdefault(record["line"], []).append(record)
    return offset + contents.size


def _match(places: Mapping[int, WholeLine], records: Mapping[int, Sequence[Record]]) -> dict[int, Numbered]:
    return {
        each.number: Numbered(record["job"], record.get("problem", ""))
        for line, each in places.items()
        for record in records.get(line, ())
        if _is_of(record, each)
    }


def _is_of(record: Record, line: WholeLine) -> bool:
    """Whether its text is that of the line: after a rotation, another line may have the same number."""
    command = record.get("command")
    text = line.data.replace(b"\r\n", b"\n")
    return command is None or text.startswith(command.encode("utf-8", "surrogateescape"))
