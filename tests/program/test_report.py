"""`report`: what became of a run, from its journal and its logs, as a summary and as data."""

import csv
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simple_gpu_scheduler.journal.read import Record, read_records
from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.report import log_tails, numbers
from simple_gpu_scheduler.report.build import Basis, build
from simple_gpu_scheduler.report.metric import last_number
from simple_gpu_scheduler.report.parameters import find_parameters
from simple_gpu_scheduler.report.text import show
from simple_gpu_scheduler.report.timeline import Span, Spans
from tests.conftest import ROOT, UNMEASURED, Program, until

CALL = """
import sys
from simple_gpu_scheduler.cli.main import _exit_with
from simple_gpu_scheduler.cli.commands.report import report_command as command
name = "simple_gpu_scheduler report"
_exit_with(name, lambda: command.main(args=sys.argv[1:], prog_name=name, standalone_mode=False))
"""
REPORT = [sys.executable, "-c", CALL]
GOLDEN = ROOT / "tests" / "golden" / "journal-1.jsonl"
START = 1_700_000_000.0


def ask(*args: str, **settings) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*REPORT, *args], check=False, capture_output=True, text=True, timeout=60, **settings)


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


def began(at: float = 0, **more) -> Record:
    names = dict.fromkeys(("program", "host", "boot", "directory"), "x")
    return {"event": "run began", "at": START + at, "run": "r", "version": 1, **names, "argv": [], **more}


def read(job: int, command: str = "true", at: float = 0) -> Record:
    return {"event": "job read", "at": START + at, "job": job, "line": job, "command": command}


def started(at: float, job: int, attempt: int = 1, gpus: tuple[str, ...] = ("0",)) -> Record:
    return {"event": "job started", "at": START + at, "job": job, "attempt": attempt, "gpus": list(gpus), "slots": []}


def ended(at: float, job: int, attempt: int = 1, outcome: str = "succeeded", runtime: float = 1, **more) -> Record:
    rest = {"code": 0, "started": START + at - runtime, "runtime": runtime, "final": True, **more}
    return {"event": "job ended", "at": START + at, "job": job, "attempt": attempt, "outcome": outcome, **rest}


def exited(at: float, job: int, status: int = 0) -> Record:
    return {"event": "job exited", "at": START + at, "job": job, "attempt": 1, "status": status}


def alone(at: float, *running: tuple[int, int]) -> Record:
    return {"event": "keeper alone", "at": START + at, "running": [[*each, 1] for each in running]}


def waited(at: float, **reasons: str) -> Record:
    waits = [{"gpu": gpu.removeprefix("gpu"), "for": reason} for gpu, reason in reasons.items()]
    return {"event": "waited", "at": START + at, "waits": waits}


def over(at: float) -> Record:
    return {"event": "run ended", "at": START + at, "all_read": True, "code": 0, "left": 0}


def built(*records: Record, now: float = 1000, standing: str = "finished", **how) -> dict[str, Any]:
    state = RunState()
    state.feed(records)
    lives = {"is_alive": False, "goes_on": False, **how}
    return build(Basis(state, records, standing, now=START + now, program="1.0", **lives))


def attempts(report: dict[str, Any], job: int = 1) -> list[tuple[float, float | None, str | None]]:
    (found,) = [each for each in report["jobs"] if each["job"] == job]
    return [
        (each["started"] - START, each["ended"] and each["ended"] - START, each["outcome"])
        for each in found["attempts"]
    ]


class TestWhatRanWhen:
    def test_each_attempt_has_its_own_span(self) -> None:
        report = built(
            began(),
            read(1),
            started(1, 1),
            ended(3, 1, outcome="failed", code=1, final=False),
            started(5, 1, 2, ("1",)),
            ended(9, 1, 2),
            over(9),
        )
        assert attempts(report) == [(1, 3, "failed"), (5, 9, "succeeded")]
        assert report["jobs"][0]["gpus"] == ["1"]
        assert (report["jobs"][0]["started"], report["jobs"][0]["ended"]) == (START + 1, START + 9)

    def test_the_last_word_on_a_job_that_waited_for_its_next_attempt_makes_that_no_longer(self) -> None:
        failed = ended(3, 1, outcome="failed", code=1, final=False)
        report = built(began(), read(1), started(1, 1), failed, {**failed, "at": START + 50, "interrupted": True})
        assert attempts(report) == [(1, 3, "failed")]

    def test_what_a_stop_ended_was_interrupted_and_its_job_waits(self) -> None:
        report = built(
            began(), read(1), started(1, 1), ended(4, 1, outcome="killed", code=15, interrupted=True), over(4)
        )
        assert attempts(report) == [(1, 4, "interrupted")]
        assert report["outcomes"] == {"waiting": 1}

    def test_what_outlived_its_scheduler_ends_when_its_keeper_saw_it_and_not_when_that_was_read(self) -> None:
        report = built(
            began(),
            read(1),
            started(1, 1),
            alone(10, (1, 1)),
            exited(20, 1),
            began(100, is_resumed=True),
            ended(101, 1, runtime=100),
            over(102),
        )
        assert attempts(report) == [(1, 20, "succeeded")]
        assert report["run"]["sessions"] == [(START, START + 10), (START + 100, START + 102)]
        assert report["run"]["seconds"] == 12

    def test_what_died_with_its_scheduler_ends_when_that_was_last_heard_of(self) -> None:
        report = built(
            began(), read(1), read(2), started(1, 1), started(7, 2), began(100), started(101, 1, 2), ended(103, 1, 2)
        )
        assert attempts(report) == [(1, 7, "interrupted"), (101, 103, "succeeded")]
        assert attempts(report, 2) == [(7, 7, "interrupted")]
        assert report["jobs"][1]["state"] == "interrupted"

    def test_what_runs_has_no_end(self) -> None:
        records = began(), read(1), read(2), started(1, 1)
        report = built(*records, now=31, standing="running", is_alive=True, goes_on=True)
        assert attempts(report) == [(1, None, None)]
        assert report["outcomes"] == {"running": 1, "waiting": 1}
        assert report["run"]["ended"] is None
        assert report["run"]["seconds"] == 31
        assert report["gpus"] == [{"gpu": "0", "attempts": 1, "busy": 30, "share": round(30 / 31, 4)}]

    def test_a_start_that_a_full_disk_has_swallowed_is_known_from_its_end(self) -> None:
        assert attempts(built(began(), read(1), ended(9, 1, runtime=4))) == [(5, 9, "succeeded")]

    def test_a_torn_record_is_passed_over(self) -> None:
        broken: Record = {"event": "job started", "at": START, "job": 1}
        report = built(began(), broken, {**started(1, 1), "gpus": "0"}, read(1), started(2, 1), ended(3, 1))
        assert attempts(report) == [(2, 3, "succeeded")]

    def test_a_wait_lasts_until_there_is_another_reason_or_a_job_starts_there(self) -> None:
        spans = Spans()
        spans.feed(
            [
                began(),
                waited(1, gpu0="bob", gpu1="eve"),
                waited(4, gpu0="bob", gpu1="ann"),
                started(9, 1, gpus=("0",)),
                over(12),
            ]
        )
        found = {(each.gpu, each.reason): (each.since - START, (each.until or 0) - START) for each in spans.waits}
        assert found == {("1", "eve"): (1, 4), ("0", "bob"): (1, 9), ("1", "ann"): (4, 12)}

    def test_what_outlived_its_scheduler_ran_until_its_end_and_not_until_that_was_written_down(self) -> None:
        records = [began(), read(1), started(1, 1), alone(2, (1, 1)), exited(4, 1), began(100)]
        report = built(*records, ended(101, 1, runtime=100), over(102))
        assert report["jobs"][0]["runtime"] == 3
        assert report["templates"][0]["longest"] == 3


def test_waits_are_summed_by_whom_they_were_for() -> None:
    alice, bob = "alice python 11.2 GiB for 2 h", "leased by bob (pid 4242, train.py)"
    later = {"gpu0": "alice python 300 MiB for 2 h 4 min", "gpu1": "leased by bob (pid 99, train.py)"}
    report = built(began(), waited(0, gpu0=alice, gpu1=bob), waited(60, **later), over(180))
    lines = show(report, None)
    assert lines[lines.index("WAITED  GPU  FOR") + 1 :] == [
        " 3 min  0    alice python",
        " 3 min  1    leased by bob (train.py)",
    ]


def test_on_a_terminal_tables_are_cut_to_its_width() -> None:
    report = built(began(), read(1, "true " + "字" * 100), started(0, 1), ended(1, 1), over(2))
    assert max(len(line) for line in show(report, 60)) <= 60 < max(len(line) for line in show(report, None))
    assert any(line.endswith("…") for line in show(report, 60))


class TestNumbers:
    def test_a_gpu_is_busy_once_however_many_share_it(self) -> None:
        def span(start: float, end: float, *gpus: str) -> Span:
            made = Span(1, gpus, start)
            made.end(end, "succeeded", 0)
            return made

        used = [span(0, 10, "2"), span(5, 15, "2", "10"), span(40, 50, "2"), span(41, 42, "2"), span(0, 1)]
        found = {each.gpu: (each.attempts, each.busy, each.share) for each in numbers.by_gpu(used, [(0, 100)], 100)}
        assert found == {"2": (4, 25, 0.25), "10": (1, 10, 0.1), "cpu": (1, 1, 0.01)}
        assert list(found) == ["2", "10", "cpu"]

    def test_templates_are_told_with_the_most_time_first(self) -> None:
        records = [began(), read(1, "short 1"), read(2, "long 1"), read(3, "long 2"), read(4, "never 1")]
        records += [started(0, 1), ended(1, 1), started(0, 2), ended(10, 2, runtime=10)]
        records += [started(0, 3), ended(30, 3, outcome="failed", code=1, runtime=30)]
        short, long, never = ("short …", 1), ("long …", 2), ("never …", 1)
        found = built(*records)["templates"]
        assert [(each["template"], each["jobs"]) for each in found] == [long, short, never]
        assert found[0] | {"template": ""} == {
            "template": "", "jobs": 2, "succeeded": 1, "failed": 1, "mean": 20, "longest": 30, "total": 40
        }  # fmt: skip
        assert (found[2]["mean"], found[2]["longest"], found[2]["total"]) == (None, None, 0)

    def test_all_of_a_journal_that_holds_everything_is_told(self) -> None:
        state, records = RunState(), read_records(GOLDEN.read_bytes()).records
        state.feed(records)
        report = build(Basis(state, records, "stopped", False, False, START, "1.0"))
        assert report["outcomes"] == {
            "succeeded": 3, "failed": 2, "timed out": 1, "killed": 2, "not started": 3, "cancelled": 2,
            "interrupted": 1, "waiting": 2,
        }  # fmt: skip
        assert sum(report["outcomes"].values()) == len(report["jobs"]) == 16
        assert report["failures"] == [3, 7, 9, 10, 15]
        by_number = {job["job"]: job for job in report["jobs"]}
        refused = by_number[8]
        assert (refused["command"], refused["template"], refused["state"]) == ("", None, "not started")
        assert "did you mean gpus?" in refused["reason"]
        assert by_number[9]["command"].endswith("\\xff\u2028")
        assert (by_number[7]["state"], by_number[7]["code"]) == ("killed", 15)
        assert by_number[13]["reason"] == "Argument list too long"
        assert report["templates"][by_number[2]["template"]]["template"] == "python train.py --seed …"
        assert report["parameters"] == ["seed"]
        assert by_number[15]["parameters"] == {"seed": "10"}
        assert json.loads(json.dumps(report, allow_nan=False))["version"] == 1


@pytest.mark.parametrize(
    ("commands", "values"),
    [
        (("t --lr 0.1", "t --lr 1e-3"), ({"lr": "0.1"}, {"lr": "1e-3"})),
        (("t --lr=0.1 -b 32", "t --lr=-1 -b 32"), ({"lr": "0.1"}, {"lr": "-1"})),
        (("t -b 32 --x -0.5", "t -b 64 --x -1"), ({"b": "32", "x": "-0.5"}, {"b": "64", "x": "-1"})),
        (("t lr=0.1 +m.opt=a", "t lr=0.2 +m.opt=b"), ({"lr": "0.1", "m.opt": "a"}, {"lr": "0.2", "m.opt": "b"})),
        (("LR=0.1 t", "LR=0.2 t"), ({"LR": "0.1"}, {"LR": "0.2"})),
        (("t 1 5 'a b'", "t 2 5 'c'"), ({"#1": "1", "#2": "a b"}, {"#1": "2", "#2": "c"})),
        (("t --opt adam", "t --opt sgd"), ({"opt": "adam"}, {"opt": "sgd"})),
        (("t --amp", "t"), ({"amp": "yes"}, {})),
        (("t --name 'it'\"'\"'s'", 't --name "x"'), ({"name": "it's"}, {"name": "x"})),
        (("t --s 1 > o/1 2>&1", "t --s 2 > o/2 2>&1"), ({"s": "1"}, {"s": "2"})),
        (("t --s 1; echo", "t --s 2; echo"), ({"s": "1"}, {"s": "2"})),
        (("t --x 1 --x 2", "t --x 1 --x 3"), ({"x": "1 2"}, {"x": "1 3"})),
        (("t --lr 0.1", "t --lr 0.1"), ({}, {})),
        (("t --lr 0.1", "other --lr 0.2"), ({}, {})),
        (("t 'unclosed --lr 0.1", "t 'unclosed --lr 0.2"), ({"lr": "0.1"}, {"lr": "0.2"})),
    ],
)  # fmt: skip
def test_what_varies_among_commands_that_do_the_same_is_a_parameter(commands, values) -> None:
    found = find_parameters(commands)
    assert tuple(found.values) == values
    assert list(found.names) == list(dict.fromkeys(name for each in values for name in each))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("loss 0.5", 0.5),
        ("loss: 0.9\nepoch 2, loss: 0.5, acc 1", 0.5),
        ("loss=5e-3", 0.005),
        ("loss = -.5", -0.5),
        ('{"epoch": 3, "loss": 0.5}', 0.5),
        ("{'loss': 0.5}", 0.5),
        ("| loss | 0.5 |", 0.5),
        ("loss: tensor(0.5, device='cuda:0')", 0.5),
        ("loss: \x1b[1;36m0.5\x1b[0m", 0.5),
        ("loss 93%", 93),
        ("0/10 loss 0.9\r10/10 loss 0.5 - val_loss 0.7", 0.5),
        ("loss 0.5\nloss went down", 0.5),
        ("loss: -inf", float("-inf")),
        ("train_loss 0.5", None),
        ("val/loss 0.5", None),
        ("loss_fn 0.5", None),
        ("--loss 0.5", None),
        ("loss 10k", None),
        ("loss 1.2.3", None),
        ("loss\n0.5", None),
        ("", None),
    ],
)
def test_the_last_number_behind_a_name_counts_and_the_name_is_matched_whole(text: str, number: float | None) -> None:
    assert last_number(text, "loss") == number


def test_a_name_may_be_anything() -> None:
    assert str(last_number("val/loss = nan", "val/loss")) == "nan"
    assert last_number("a.b[0] (top 5): 3", "a.b[0] (top 5)") == 3
    assert last_number("aa: 3 a: 4 aa", "a") == 4


class TestLogs:
    def test_the_result_is_looked_for_further_up_where_it_does_not_stand_at_the_end(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        for size in (100, 100_000, 3_000_000):
            log.write_text("loss 0.7\nloss 0.25\n" + "x" * 98 + "\n" + ("." * 99 + "\n") * (size // 100))
            assert log_tails.read_result(str(log), "loss") == 0.25

    def test_a_name_that_is_cut_where_reading_begins_is_not_the_name(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        rest = " 0.5\n" + "." * (log_tails.TAIL - len("loss 0.5\n"))
        log.write_text("train_loss" + rest)
        assert log_tails.read_result(str(log), "loss") is None
        log.write_text("\nloss" + rest)
        assert log_tails.read_result(str(log), "loss") == 0.5

    def test_what_an_earlier_attempt_printed_does_not_count(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        head = "[simple_gpu_scheduler] command: t --loss 9\n"
        log.write_text(f"{head}loss 0.5\n{head}no number\n")
        assert log_tails.read_result(str(log), "loss") is None

    def test_what_is_no_plain_file_is_not_read(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        assert log_tails.read_result(str(tmp_path / "fifo"), "loss") is None
        assert log_tails.read_result(str(tmp_path), "loss") is None
        assert log_tails.read_result(str(tmp_path / "none"), "loss") is None

    def test_a_tail_is_short_and_all_of_them_keep_to_a_budget(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "log").write_text("".join(f"\x1b[31mline {number}\x1b[0m\n\n" for number in range(100)))
        (tmp_path / "wide").write_text("y" * 5000 + "\n" + "0 %\r50 %\r100 %\n")
        logs = [(number, str(tmp_path / ("wide" if number % 2 else "log"))) for number in range(1, 9)]
        tail = log_tails.read_tails(logs)
        assert tail[2].split("\n") == [f"line {number}" for number in range(80, 100)]
        assert len(tail[1]) == 2000
        assert tail[1].endswith("y\n100 %")
        monkeypatch.setattr(log_tails, "_IN_ALL", 2500)
        assert list(log_tails.read_tails(logs)) == [1, 2, 3]


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

    def test_a_name_that_nobody_prints_is_said(self, run: Path) -> None:
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


def test_where_output_was_not_kept_that_is_said_once(program: Program) -> None:
    program.run("--gpus", "0", stdin="false\n" * 12)
    text = told("--metric", "loss", cwd=program.directory)
    assert "  and 2 more: simple_gpu_scheduler history " in text
    assert text.count("job output was not kept; --output files or --logs DIR keeps it") == 1


def test_a_run_that_goes_on_is_told_as_far_as_it_went(program: Program) -> None:
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

    def test_a_page_is_written_for_its_owner_alone_and_only_that_is_said(self, directory: Path) -> None:
        (directory / "page.html").write_text("old")
        (directory / "page.html").chmod(0o644)
        done = ask("--html", "page.html", cwd=directory)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote page.html\n")
        page = directory / "page.html"
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert "<html" in page.read_text()
        assert list(directory.glob("page.html*")) == [page]

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
    def test_what_cannot_be_written_is_said(self, directory: Path, name: str, sentence: str) -> None:
        os.mkfifo(directory / "fifo")
        assert sentence in refusal("--html", name, cwd=directory)
        assert not stat.S_ISREG(Path("/dev/null").stat().st_mode)
