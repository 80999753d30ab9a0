"""`report`: what became of a run, from its journal and its logs, as a summary and as data."""

import csv
import io
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SCHEDULER, UNMEASURED, Program, until

CALL = """
import sys
from simple_gpu_scheduler.cli.call import call
from simple_gpu_scheduler.cli.main import _exit_with
from simple_gpu_scheduler.cli.commands.report import report_command as command
name = "simple_gpu_scheduler report"
_exit_with(name, lambda: call(command, sys.argv[1:], name))
"""
REPORT = [sys.executable, "-c", CALL]


def ask(*args: str, **settings) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*REPORT, *args], check=False, capture_output=True, text=True, timeout=120, **settings)


def told(*args: str, cwd: Path) -> str:
    done = ask(*args, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def as_json(*args: str, cwd: Path) -> dict[str, Any]:
    report = json.loads(told(*args, "--json", cwd=cwd))
    assert isinstance(report, dict)
    return report


def refusal(*args: str, cwd: Path) -> str:
    done = ask(*args, cwd=cwd)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


SWEEP = """
python3 -c "print('loss 0.9')" --lr 0.1
python3 -c "print('loss: 0.25')" --lr 0.2
python3 -c "print('loss=nan')" --lr 0.3
python3 -c "print('loss 0.5'); print('no such file'); exit(3)" --lr 0.4
true \x1b[31m #: name=plain
"""


class TestOfARealRun:
    @pytest.fixture
    def run(self, program: Program) -> Path:
        done = program.run("--gpus", "0", "1", "--logs", "logs", stdin=SWEEP)
        assert done.returncode == 1
        return program.directory

    def test_the_summary_says_what_a_tired_person_wants_to_know(self, run: Path) -> None:
        lines = told("--metric", "loss", cwd=run).splitlines()
        text = "\n".join(lines)
        assert lines[0].endswith(": finished with exit code 1")
        assert lines[2] == "  4 succeeded, 1 failed"
        failed = lines.index("FAILED")
        assert "job 4 (line 5), gpu " in lines[failed + 1]
        assert "failed with exit code 3 after" in lines[failed + 1]
        assert lines[failed + 2 : failed + 4] == ["      | loss 0.5", "      | no such file"]
        assert "python3 -c … --lr …" in text
        assert "true \\x1b[31m" in text
        assert "\x1b" not in text
        results = [line.split() for line in lines[next(n for n, line in enumerate(lines) if "PARAMETERS" in line) :]]
        assert lines[-1].startswith("no number after this name in the output of ")
        assert [(row[0], row[1]) for row in results[:-1]] == [
            ("loss", "JOB"), ("0.25", "2"), ("0.5", "4"), ("0.9", "1")
        ]  # fmt: skip
        assert results[1][-1] == "lr=0.2"

    def test_json_has_all_of_it(self, run: Path) -> None:
        report = as_json("--metric", "loss", cwd=run)
        assert (report["version"], report["metric"], report["run"]["code"]) == (1, "loss", 1)
        assert report["run"]["directory"] == str(run)
        assert [job["result"] for job in report["jobs"]] == [0.9, 0.25, None, 0.5, None]
        assert [job["parameters"].get("lr") for job in report["jobs"]] == ["0.1", "0.2", "0.3", "0.4", None]
        assert report["jobs"][3]["tail"] == "loss 0.5\nno such file"
        assert report["jobs"][4]["name"] == "plain"
        assert {each["gpu"] for each in report["gpus"]} <= {"0", "1"}
        assert all(0 <= each["share"] <= 1 for each in report["gpus"])
        span = report["jobs"][0]["attempts"][0]
        assert report["run"]["begun"] <= span["started"] <= span["ended"] <= report["run"]["ended"]

    def test_csv_has_a_row_for_each_job_and_a_column_for_each_parameter(self, run: Path) -> None:
        rows = list(csv.DictReader(io.StringIO(told("--csv", "--metric", "loss", cwd=run))))
        assert [(row["job"], row["state"], row["lr"], row["loss"]) for row in rows[:2]] == [
            ("1", "succeeded", "0.1", "0.9"), ("2", "succeeded", "0.2", "0.25")
        ]  # fmt: skip
        assert rows[4]["command"] == "true \\x1b[31m"
        assert len(rows) == 5

    def test_a_metric_that_no_job_prints_is_reported(self, run: Path) -> None:
        assert told("--metric", "acc", cwd=run).endswith("acc: no log has a number after this name\n")

    def test_logs_that_are_gone_are_no_error(self, run: Path) -> None:
        for log in (run / "logs").iterdir():
            log.unlink()
        done = ask("--metric", "loss", "--json", cwd=run)
        assert (done.returncode, done.stderr) == (0, "no log has a number after 'loss'\n")
        assert json.loads(done.stdout)["jobs"][3]["tail"] == ""

    def test_a_run_is_named_as_everywhere(self, run: Path) -> None:
        name = as_json(cwd=run)["run"]["id"]
        assert as_json(name.rpartition("-")[2], cwd=run)["run"]["id"] == name
        assert "no run matches 'nonsense'" in refusal("nonsense", cwd=run)


def test_where_output_was_not_kept_that_is_reported_once(program: Program) -> None:
    program.run("--gpus", "0", stdin="false\n" * 12)
    text = told("--metric", "loss", cwd=program.directory)
    assert "  and 2 more: simple_gpu_scheduler history " in text
    assert text.count("job output was not kept; --output files or --logs DIR keeps it") == 1


def test_a_running_run_is_reported_up_to_now(program: Program) -> None:
    process = program.start("--gpus", "0", env=UNMEASURED)
    program.feed(process, "touch begun; sleep 60\ntrue\n")
    until((program.directory / "begun").exists, "the job runs")
    report = as_json(cwd=program.directory)
    assert report["run"]["state"] == "running"
    assert report["outcomes"] == {"running": 1, "waiting": 1}
    assert report["jobs"][0]["attempts"][0]["ended"] is None
    assert "so far" in told(cwd=program.directory)


def test_an_empty_run_is_no_error(program: Program) -> None:
    program.run("--gpus", "0", stdin="")
    assert "no jobs" in told("--metric", "loss", cwd=program.directory)
    assert as_json(cwd=program.directory)["jobs"] == []


def test_two_things_cannot_be_printed_at_once(program: Program) -> None:
    program.run("--gpus", "0", stdin="true\n")
    assert "exclude each other" in ask("--csv", "--json", cwd=program.directory).stderr


class TestWriting:
    @pytest.fixture
    def directory(self, program: Program) -> Path:
        program.run("--gpus", "0", stdin="true\n")
        return program.directory

    def test_a_page_is_written_for_its_owner_alone_with_no_other_message(self, directory: Path) -> None:
        (directory / "page.html").touch()
        (directory / "page.html").chmod(0o644)
        done = ask("--html", "page.html", cwd=directory)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote page.html\n")
        page = directory / "page.html"
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert "<html" in page.read_text()
        assert list(directory.glob("page.html*")) == [page]

    @pytest.mark.parametrize("option", ["--html", "--png"])
    def test_a_file_that_is_no_report_is_not_overwritten(self, directory: Path, option: str) -> None:
        jobs = directory / "jobs.txt"
        jobs.write_text("true\n# <title>Report of a run</title>\n")
        other = directory / "other"
        kind = "a report" if option == "--html" else "a PNG image"
        sentence = f"jobs.txt is not {kind} and is not overwritten; choose another file"
        assert sentence in refusal("--html", "other", option, "jobs.txt", cwd=directory)
        assert jobs.read_text() == "true\n# <title>Report of a run</title>\n"
        assert not other.exists()

    def test_an_earlier_report_is_overwritten(self, directory: Path) -> None:
        page = directory / "page.html"
        assert ask("--html", "page.html", cwd=directory).returncode == 0
        mark = '<meta name="generator" content="simple_gpu_scheduler report">\n'
        before_the_mark = page.read_text().replace(mark, "")
        assert before_the_mark != page.read_text()
        page.write_text(before_the_mark)
        for _ in range(2):
            assert ask("--html", "page.html", cwd=directory).returncode == 0
            assert mark in page.read_text()

    def test_a_link_stays_one(self, directory: Path) -> None:
        (directory / "real").mkdir()
        (directory / "page.html").symlink_to("real/page.html")
        assert ask("--html", "page.html", cwd=directory).returncode == 0
        assert (directory / "page.html").is_symlink()
        assert "<html" in (directory / "real" / "page.html").read_text()

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [
            (".", "cannot write .: it is a directory; name a file in it"),
            ("none/page.html", "cannot write none/page.html: No such file or directory"),
            ("fifo", "cannot write fifo: it is not a regular file"),
            ("/dev/null", "cannot write /dev/null: it is not a regular file"),
            ("", "cannot write"),
        ],
    )
    def test_what_cannot_be_written_is_reported(self, directory: Path, name: str, sentence: str) -> None:
        os.mkfifo(directory / "fifo")
        assert sentence in refusal("--html", name, cwd=directory)
        assert not stat.S_ISREG(Path("/dev/null").stat().st_mode)


class TestOddFiles:
    @pytest.fixture
    def directory(self, program: Program) -> Path:
        program.run("--gpus", "0", "--ignore-occupancy", stdin="true\n")
        return program.directory

    def test_a_pipe_is_no_file(self, directory: Path) -> None:
        done = ask("--html", "/dev/stdout", cwd=directory)
        assert (done.returncode, done.stderr.count("it is not a regular file")) == (2, 1)

    def test_a_name_may_be_as_long_as_names_may_be(self, directory: Path) -> None:
        name = "é" * 125 + ".html"
        assert ask("--html", name, cwd=directory).returncode == 0
        assert (directory / name).exists()

    def test_a_reader_of_the_first_line_only_is_no_error(self, directory: Path) -> None:
        for option in ("--json", "--csv"):
            with subprocess.Popen([*REPORT, option], cwd=directory, stdout=subprocess.PIPE, stderr=-1) as process:
                assert process.stdout
                process.stdout.close()
                assert process.stderr
                assert process.stderr.read() == b""


def test_why_jobs_were_not_started_is_reported_once_for_all(program: Program) -> None:
    lines = ["false #: name=first", "true #: after=first", "true #: after=first", "true #: bogus=1"]
    program.run("--gpus", "0", "--ignore-occupancy", "-q", stdin="\n".join(lines) + "\n")
    text = told(cwd=program.directory)
    assert "          2  job 1 \"first\" did not succeed\n          1  unknown option 'bogus'" in text


def test_a_run_that_was_killed_and_resumed_is_shown_as_in_history(program: Program) -> None:
    lines = (
        "until [ -e go ]; do sleep 0.05; done; echo loss: 3",
        "false",
        "kill -9 $$",
        "true #: gpus=0",
        "sleep 9 #: timeout=0.2 retries=1",
        "true",
    )
    (program.directory / "jobs").write_text("".join(f"{line}\n" for line in lines))
    process = program.start("--gpus", "0", "1", "--ignore-occupancy", "--output", "files", "jobs", env=UNMEASURED)
    until(lambda: '"failed": 1' in ask("--json", cwd=program.directory).stdout, "the second job has failed")
    process.send_signal(signal.SIGKILL)
    process.wait()
    (program.directory / "go").touch()
    report = as_json(cwd=program.directory)
    assert report["run"]["state"] == "died"
    assert report["outcomes"].get("running", 0) <= 2
    program.run("--resume")
    report = as_json("--metric", "loss", cwd=program.directory)
    call = [*SCHEDULER, "history", report["run"]["id"], "--json"]
    rows = json.loads(subprocess.run(call, check=True, capture_output=True, cwd=program.directory).stdout)
    rows = rows["jobs"] if isinstance(rows, dict) else rows
    groups = {"timed out": "failed", "stalled": "failed", "killed": "failed"}
    states = {row["job"]: {"refused": "not started"}.get(row["state"], row["state"]) for row in rows}
    assert {job["job"]: groups.get(job["state"], job["state"]) for job in report["jobs"]} == states
    assert {job["job"]: job["result"] for job in report["jobs"] if job["result"]} == {1: 3}
    assert len(report["run"]["sessions"]) == 2
    assert all(0 <= each["share"] <= 1 for each in report["gpus"])
