"""Resuming by a job log. What GNU parallel does with each log is in a golden file."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Attempt, Job, Outcome, Place
from simple_gpu_scheduler.events import JobEnded
from simple_gpu_scheduler.jobfile.parse import LineParser, Refusal
from simple_gpu_scheduler.joblog.resume import (
    HEADER,
    LogRow,
    SkippingParser,
    continuation,
    differs,
    read_joblog,
    skipped,
)
from simple_gpu_scheduler.joblog.sink import row as written_row
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "joblog_resume.json"
LINES = b"echo a\n\n# remark\n  \nfalse\necho c\necho d\n"
NUMBERS = range(1, 8)

ROWS = HEADER + b"".join(
    b"%d\t:\t1700000000.123\t     0.001\t0\t2\t%d\t%d\tjob %d\n" % each
    for each in ((1, 0, 0, 1), (2, 1, 0, 2), (3, -1, 15, 3), (4, 0, 9, 4), (2, 0, 0, 2), (1, 1, 0, 1))
)
EDITED = {
    "several rows of a job": ROWS,
    "rows in another order": HEADER + b"".join(reversed(ROWS[len(HEADER) :].splitlines(keepends=True))),
    "a row taken out": b"".join(ROWS.splitlines(keepends=True)[:4] + ROWS.splitlines(keepends=True)[5:]),
    "another command": ROWS.replace(b"job 1", b"rm x"),
    "another host": ROWS.replace(b"\t:\t", b"\tnode1\t"),
    "no command": ROWS.replace(b"job 4", b""),
    "a tab and zeros in the command": ROWS.replace(b"job 3", b"a\t0\t0\tb"),
    "the header alone": HEADER,
    "nothing": b"",
}


def run_by_us(log: bytes, *, resume_failed: bool) -> str:
    done = skipped(read_joblog(log).rows, resume_failed=resume_failed)
    return "".join(str(number) for number in NUMBERS if number not in done)


def jobs(parser: SkippingParser, text: bytes) -> list[Job | Refusal | None]:
    return [parser.parse(number, line, len(line)) for number, line in enumerate(text.splitlines(), 1)]


def resuming(rows: list[LogRow], *, resume_failed: bool = False) -> SkippingParser:
    return SkippingParser(LineParser(lambda: (1.0,) * 4), rows, resume_failed=resume_failed)


@pytest.fixture(scope="module")
def golden() -> dict:
    return json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("resume_failed", [False, True])
@pytest.mark.parametrize("name", EDITED)
def test_the_same_jobs_are_run_as_by_gnu_parallel(golden: dict, name: str, resume_failed: bool) -> None:
    assert run_by_us(EDITED[name], resume_failed=resume_failed) == golden["edited"][name][resume_failed]


@pytest.mark.parametrize("resume_failed", [False, True])
def test_a_log_of_gnu_parallel_cut_at_every_byte_runs_the_jobs_that_parallel_runs(golden: dict, resume_failed) -> None:
    log = golden["log"].encode()
    assert run_by_us(log, resume_failed=resume_failed) == ("2346" if resume_failed else "6") + "7"
    for cut, answers in enumerate(golden["cuts"]):
        theirs, torn = answers[resume_failed], log[:cut].rpartition(b"\n")[2]
        ours = run_by_us(log[:cut], resume_failed=resume_failed)
        if torn.isdigit():  # parallel takes 1 for a job's number where 12 is torn; we know no number
            theirs = run_by_us(log[: cut - len(torn)], resume_failed=resume_failed)
        elif theirs is None:  # it refuses the log
            assert resume_failed
            assert torn
            theirs = run_by_us(log[: cut - len(torn)], resume_failed=True)
        assert ours == theirs, log[:cut]


def test_a_log_that_is_repaired_is_one_for_gnu_parallel_too(golden: dict) -> None:
    log = golden["log"].encode()
    for cut, answers in enumerate(golden["mended"]):
        repaired = repair(log[:cut])
        assert repaired.endswith(b"\n")
        assert [run_by_us(repaired, resume_failed=False), run_by_us(repaired, resume_failed=True)] == answers
        if cut and not log[:cut].endswith(b"\n"):
            assert run_by_us(repaired, resume_failed=False) == run_by_us(log[:cut], resume_failed=False)


@pytest.mark.parametrize("columns", range(2, 10))
@pytest.mark.parametrize("torn", [b"", b"1"])
def test_a_torn_row_gets_the_columns_that_it_lacks_and_no_success(columns: int, torn: bytes) -> None:
    whole = [b"12", b":", b"17.1", b"0", b"0", b"0", b"0", b"0"]
    log = HEADER + b"\t".join([*whole[: columns - 1], torn])
    row = repair(log).splitlines()[-1].split(b"\t")
    assert len(row) == 9
    assert row[8]  # a blank one would stand for a blank line
    (read,) = read_joblog(repair(log)).rows
    assert (read.number, read.is_success, read.is_whole) == (12, columns == 9, True)


def test_a_number_that_is_torn_is_taken_out() -> None:
    assert repair(ROWS + b"12") == ROWS


def repair(log: bytes) -> bytes:
    size, first = continuation(log)
    return log[:size] + first


@pytest.mark.parametrize("log", [ROWS, HEADER])
def test_a_complete_log_is_resumed_unchanged(log: bytes) -> None:
    assert continuation(log) == (len(log), b"")


@pytest.mark.parametrize("log", [b"", HEADER[:1], HEADER[:-1]])
def test_a_log_whose_header_is_not_whole_begins_anew(log: bytes) -> None:
    assert read_joblog(log).rows == []
    assert continuation(log) == (0, HEADER)


@pytest.mark.parametrize("data", [b"python train.py\n", b"\n", ROWS.partition(b"\n")[2], HEADER.lower()])
def test_what_has_no_header_is_no_job_log(data: bytes) -> None:
    with pytest.raises(ValueError, match="header of a job log"):
        read_joblog(data)
    with pytest.raises(ValueError, match="header of a job log"):
        continuation(data)


def test_lines_that_are_no_rows_are_counted_and_passed_over() -> None:
    log = read_joblog(ROWS + b"\nhello\n\0\0\0\n" + b"9" * 5000 + b"\t\n" + b"12")
    assert log.unreadable == 5
    assert log.rows == read_joblog(ROWS).rows


def test_two_rows_that_have_run_into_one_are_no_success_of_the_first() -> None:
    merged = b"5\t:\t176\t:\t1700000000.123\t     0.001\t0\t0\t0\t0\ttrue\n"
    assert [(row.number, row.is_success) for row in read_joblog(HEADER + merged).rows] == [(5, False)]


@given(st.integers(1, 10**9), st.sampled_from(["succeeded", "failed", "killed", "timed out", "stalled"]), st.binary())
def test_what_our_job_log_writes_is_read_as_it_was_meant(number, kind, command) -> None:
    job = Job(number, command.replace(b"\0", b""), Place(1))
    code = {"succeeded": 0, "failed": 3, "killed": 9, "timed out": 0, "stalled": 0}[kind]
    line = written_row(JobEnded(Attempt(job, 1, ("0",), (0,)), Outcome(kind, code), 1.7e9, 0.25, is_final=True))
    (row,) = read_joblog(HEADER + line).rows
    assert (row.number, row.is_success, row.is_whole) == (number, kind == "succeeded", True)
    assert not differs(row, job)
    assert differs(row, job._replace(command=job.command + b"x")) or command == b"?"  # which a repaired row has


@given(st.binary(max_size=60), st.integers(0, len(ROWS)))
def test_no_log_breaks_the_reading_or_is_unended_when_repaired(garbage: bytes, cut: int) -> None:
    log = ROWS[: max(cut, len(HEADER))] + garbage
    rows = read_joblog(log).rows
    assert skipped(rows, resume_failed=True) <= skipped(rows, resume_failed=False)
    assert repair(log).endswith(b"\n")
    assert repair(repair(log)) == repair(log)
    assert skipped(read_joblog(repair(log)).rows, resume_failed=False) == skipped(rows, resume_failed=False)


@pytest.mark.parametrize(
    ("logged", "command", "is_other"),
    [
        (b"python a.py", b"python a.py", False),
        (b"python a.py", b"python b.py", True),
        (b"echo a\0echo b", b"echo a\necho b", False),
        (b"python a.py   #: gpus=2", b"python a.py", False),  # to GNU parallel, options are a comment
        (b"python a.py\r", b"python a.py", False),
        (b"python a.py #: nonsense", b"python a.py", True),
        (b"?", b"python a.py", False),
    ],
)
def test_a_row_of_another_command_is_seen(logged: bytes, command: bytes, is_other: bool) -> None:
    assert differs(LogRow(1, 0, 0, logged, is_whole=True), Job(1, command, Place(1))) is is_other
    assert not differs(LogRow(1, 0, 0, logged, is_whole=False), Job(1, command, Place(1)))


def test_jobs_of_the_log_are_left_out_and_counted() -> None:
    parser = resuming([LogRow(1, 0, 0, b"a", is_whole=True), LogRow(3, 1, 0, b"other", is_whole=True)])
    parser.begin("jobs.txt")
    assert jobs(parser, b"a\n\nb\nc\nd #: gpus=9") == [
        None,
        None,
        Job(2, b"b", Place(3, "jobs.txt")),
        None,
        Refusal(4, Place(5, "jobs.txt"), "gpus=9: this run has only 4 GPUs", is_bad_option=True),
    ]
    assert (parser.succeeded, parser.failed) == (1, 1)
    assert parser.stay_failed == {3}
    assert parser.differing == 1
    assert parser.first_differing == Job(3, b"c", Place(4, "jobs.txt"))


def test_with_resume_failed_only_those_that_succeeded_are_left_out() -> None:
    rows = [LogRow(1, 0, 0), LogRow(1, 1, 0), LogRow(2, 1, 0), LogRow(3, 0, 15), LogRow(4)]
    parser = resuming(rows, resume_failed=True)
    assert [job.number for job in jobs(parser, b"a\nb\nc\nd\ne\n") if job] == [2, 3, 4, 5]
    assert (parser.succeeded, parser.failed, parser.stay_failed) == (1, 0, set())


def test_a_job_waits_no_more_for_one_that_succeeded_and_still_for_one_that_failed() -> None:
    rows = [LogRow(1, 0, 0), LogRow(2, 1, 0)]
    text = b"a #: name=a\nb #: name=b\nc #: name=c\nd #: after=a,b,c\ne #: after=a\n"
    afters = {job.number: job.after for job in jobs(resuming(rows), text) if isinstance(job, Job)}
    assert afters == {3: (), 4: (2, 3), 5: ()}


def test_in_a_log_of_gnu_parallel_blank_lines_and_comments_have_numbers(golden: dict) -> None:
    log = read_joblog(golden["lines"].encode())
    assert [row.number for row in log.rows] == [1, 2, 3, 4, 5]
    parser = resuming(log.rows)
    assert [(job.number, job.command) for job in jobs(parser, LINES) if job] == [(6, b"echo c"), (7, b"echo d")]
    assert (parser.succeeded, parser.failed, parser.differing) == (1, 1, 0)


def test_in_a_log_of_gnu_parallel_without_blank_lines_comments_have_numbers(golden: dict) -> None:
    log = read_joblog(golden["lines -r"].encode())
    assert [row.number for row in log.rows] == [1, 2, 3]
    parser = resuming(log.rows)
    text = LINES.replace(b"echo c", b"echo c #: name=c").replace(b"echo d", b"echo d #: after=c")
    assert [(job.number, job.after) for job in jobs(parser, text) if job] == [(4, ()), (5, (4,))]
    assert parser.differing == 0


def test_in_a_log_of_ours_they_have_none() -> None:
    rows = [LogRow(1, 0, 0, b"echo a", is_whole=True), LogRow(2, 1, 0, b"# x\0false", is_whole=True)]
    assert [job.number for job in jobs(resuming(rows), LINES) if job] == [3, 4]
