"""The numbers of submitted lines are read from what the run has recorded, and are never those of other lines."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from simple_gpu_scheduler.inputs import job_numbers
from simple_gpu_scheduler.inputs.job_numbers import Numbered, find_receiver
from simple_gpu_scheduler.inputs.submit import WholeLine, Written
from simple_gpu_scheduler.journal import files, records

MARK = b"# submit 0123456789abcdef\n"


class Run:
    """An active run that reads the pipe `q.fifo` and follows the file `q.txt`."""

    def __init__(self, directory: Path) -> None:
        self.pipe, self.file = directory / "q.fifo", directory / "q.txt"
        self.spool = directory / "run.input-0"
        self.journal = str(directory / "run.jsonl")
        for path in (self.pipe, self.file, self.spool):
            path.touch()
        self.fd = files.create(self.journal)
        files.lock(self.fd, files.SCHEDULER)
        kinds = [
            {"kind": "fifo", "path": str(self.pipe), "name": "pipe", "spool": "input-0"},
            {"kind": "follow", "path": str(self.file)},
        ]
        self.add(records.record("run began", 1.0, version=1, inputs=kinds))

    def add(self, *lines: str) -> None:
        os.write(self.fd, "".join(lines).encode())

    def read(self, job: int, line: int, command: str, source: str = "") -> None:
        self.add(records.record("job read", 2.0, job=job, line=line, source=source, command=command))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setattr(job_numbers, "PATIENCE", 0.0)
    run = Run(tmp_path)
    yield run
    os.close(run.fd)


def asked(path: Path, run: Run) -> job_numbers.Receiver:
    found = find_receiver(str(path), [run.journal])
    assert found
    return found


def test_of_equal_lines_in_a_pipe_those_behind_the_mark_are_meant(run: Run) -> None:
    run.spool.write_bytes(b"true\ntrue\n")
    run.read(1, 1, "true", "pipe")
    receiver = asked(run.pipe, run)
    written = [Written([WholeLine(1, b"true\n"), WholeLine(2, b"a \\\r\n b\r\n"), WholeLine(4, b"true\n")], mark=MARK)]
    run.spool.write_bytes(b"true\ntrue\ntrue\n" + MARK + b"true\na \\\r\n b\r\ntrue\ntrue\n")
    for job, (line, command) in enumerate([(2, "true"), (3, "true"), (4, "true"), (5, "a \\\n b"), (8, "true")], 2):
        run.read(job, line, command, "pipe")
    assert job_numbers.numbers(receiver, written, 3) == {1: Numbered(4), 2: Numbered(5)}
    run.read(7, 7, "true", "another input")
    run.read(8, 7, "true", "pipe")
    assert job_numbers.numbers(receiver, written, 3) == {1: Numbered(4), 2: Numbered(5), 4: Numbered(8)}


def test_a_pipe_that_was_not_read_yet_gives_none(run: Run) -> None:
    receiver = asked(run.pipe, run)
    written = [Written([WholeLine(1, b"true\n")], mark=MARK)]
    run.read(1, 1, "true", "pipe")
    run.spool.write_bytes(b"true\n" + MARK[:9])
    assert job_numbers.numbers(receiver, written, 1) == {}


def test_a_line_of_a_file_is_told_by_its_place_and_its_text(run: Run) -> None:
    run.file.write_bytes(b"one\ntwo\n")
    run.read(1, 3, "true")  # of a file that was here before
    receiver = asked(run.file, run)
    run.file.write_bytes(b"one\ntwo\ntrue  #: gpus=2\n")
    written = [Written([WholeLine(1, b"true  #: gpus=2\n")], 8)]
    run.read(2, 3, "another")
    run.read(3, 4, "true")
    assert job_numbers.numbers(receiver, written, 1) == {}
    run.read(4, 3, "true")
    assert job_numbers.numbers(receiver, written, 1) == {1: Numbered(4)}


def test_a_refused_line_has_a_number_and_a_reason(run: Run) -> None:
    receiver = asked(run.file, run)
    run.file.write_bytes(b"true #: after=x\n")
    run.add(records.record("line refused", 2.0, job=1, line=1, source="", problem="no such job"))
    written = [Written([WholeLine(1, b"true #: after=x\n")], 0)]
    assert job_numbers.numbers(receiver, written, 1) == {1: Numbered(1, "no such job")}


def test_a_journal_or_a_file_that_is_gone_gives_none(run: Run) -> None:
    receiver = asked(run.file, run)
    run.file.unlink()
    assert job_numbers.numbers(receiver, [Written([WholeLine(1, b"true\n")])], 1) == {}
    assert find_receiver(str(run.file), [run.journal]) is None


def test_only_an_active_run_that_reads_this_queue_is_asked(run: Run, tmp_path: Path) -> None:
    assert find_receiver(str(tmp_path / "other"), [run.journal]) is None
    os.close(run.fd)
    run.fd = os.open(os.devnull, os.O_RDONLY)
    assert find_receiver(str(run.pipe), [run.journal]) is None
