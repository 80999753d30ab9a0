"""What was printed last, and who still prints."""

import os
from pathlib import Path

import pytest

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Place
from simple_gpu_scheduler.output import is_log, log_of
from simple_gpu_scheduler.output.log_file import (
    create,
    footer,
    header,
    last_lines,
    last_shown,
    output_of,
    read_tail,
    run_that_prints,
    without_remarks,
    write_remark,
)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("one\ntwo\n", "two"),
        ("10%\r20%\r", "20%"),
        ("\x1b[32mgreen\x1b[0m\n\n", "green"),
        ("\x1b]0;title\x07text", "text"),
        ("", ""),
    ],
)
def test_the_last_that_a_terminal_would_show(printed: str, shown: str) -> None:
    assert last_shown(printed) == shown


def test_the_output_of_the_newest_attempt_has_no_header_and_no_footer() -> None:
    head = header(Attempt(Job(1, b"true", Place(1)), 1, (), ()), "one", 0.0).decode()
    foot = footer(SUCCESS, 1.0, 0.0).decode()
    assert output_of(f"{head}first\n{foot}{head}one\n[simple_gpu_scheduler] mine\ntwo\n{foot}") == (
        "one\n[simple_gpu_scheduler] mine\ntwo\n"
    )
    assert output_of(f"cut off\n{foot}") == "cut off\n"


def test_the_last_lines_are_those_with_something_in_them() -> None:
    assert last_lines("a\n\nb\r\nc\rd\n \n", 2) == ["b", "d"]


def test_what_we_write_in_the_middle_of_an_attempts_output_is_not_its_output(tmp_path: Path) -> None:
    log = tmp_path / "0001.log"
    os.close(create(str(log), header(Attempt(Job(1, b"true", Place(1)), 1, (), ()), "one", 0.0)))
    with log.open("ab") as output:
        output.write(b"one\n10%")
    size = log.stat().st_size
    assert write_remark(str(log), ["it hangs", *["x" * 100] * 300]) == (size, log.stat().st_size)
    assert log.read_bytes()[size:].startswith(b"\n[simple_gpu_scheduler] | it hangs\n[simple_gpu_scheduler] | xxx")
    assert read_tail(str(log)) == "one\n10%\n", "however long ours is"
    assert without_remarks(log.read_bytes()[size + 1 :] + b"two\n") == b"two\n"
    end = log.stat().st_size
    assert write_remark(str(log), ["again"])[0] == end, "on a line of its own already"


def test_a_log_is_held_as_long_as_a_process_may_print_there(tmp_path: Path) -> None:
    job = Job(1, b"true", Place(1), name="of run x, attempt 7")
    log = log_of(str(tmp_path), job)
    assert is_log(os.path.basename(log))
    for run in ("one", "two"):
        fd = create(log, header(Attempt(job, 1, (), ()), run, 0.0))
        inherited = os.dup(fd)
        os.close(fd)
        assert run_that_prints(log) == run
        if run == "two":
            os.truncate(log, 0)  # as a job does that opens /dev/stdout
            assert run_that_prints(log) == ""
        os.close(inherited)
        assert run_that_prints(log) is None


@pytest.mark.parametrize("name", ["0001.log.gz", "notes.log", "001.log", "0001 .log", "0001.LOG"])
def test_other_files_are_no_logs(name: str, tmp_path: Path) -> None:
    assert not is_log(name)
    os.mkfifo(tmp_path / "0001.log")
    assert run_that_prints(str(tmp_path / "0001.log")) is None
