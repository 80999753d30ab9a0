"""`simulate`: every kind of trace, the numbers, the published experiment, and what is said of wrong input."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.simulation.measures import Measures, Spread
from simple_gpu_scheduler.simulation.text import row
from tests.conftest import Program
from tests.program.test_report import CALL

CSV = "submit,duration,gpus,user\n0,100,1,ann\n0,10,1,bob\n5,10,2,bob\n"
SWF_JOBS = [(0, 100, 1, 200, 1), (0, 10, 1, 20, 2), (5, 10, 2, 20, 2)]
SWF = "; a comment\n" + "".join(
    f"{number} {submit} -1 {took} {gpus} -1 -1 {gpus} {asked} -1 1 {user} -1 -1 -1 -1 -1 -1\n"
    for number, (submit, took, gpus, asked, user) in enumerate(SWF_JOBS, 1)
)  # fmt: skip
HEADER = "submit,duration,gpus\n"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    (tmp_path / "trace.csv").write_text(CSV)
    return "trace.csv"


def shown(program: Program, *args: str, **settings) -> str:
    done = program.run("simulate", *args, **settings)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def told(program: Program, *args: str, **settings) -> dict:
    return json.loads(shown(program, *args, "--json", **settings))


def measures_of(told: dict) -> Measures:
    spreads = {name: Spread(**told[name]) for name in ("wait", "response", "slowdown")}
    return Measures(**{name: value for name, value in told.items() if name != "policy"} | spreads)


class TestEachKindOfTrace:
    def test_csv_swf_a_pipe_and_stdin_tell_the_same(self, program: Program, trace: str) -> None:
        (program.directory / "log.swf").write_text(SWF)
        shutil.copy(program.directory / "log.swf", program.directory / "named-otherwise")
        expected = told(program, trace, "--gpus", "2")["policies"]
        assert told(program, "-", "--gpus", "2", stdin=CSV)["policies"] == expected
        assert told(program, "/dev/stdin", "--gpus", "2", stdin=CSV)["policies"] == expected
        for each in ("log.swf", "named-otherwise"):
            assert told(program, each, "--gpus", "2", "--estimates", "exact")["policies"] == expected
        assert told(program, "log.swf", "--gpus", "2")["estimates"] == "requested"
        assert [each["policy"] for each in expected] == [*POLICIES]

    def test_a_run_its_journal_and_history(self, program: Program) -> None:
        for _ in range(2):
            program.run("--gpus", "0", stdin="sleep 0.01\nfalse\n: #: gpus=0\n")
        journals = sorted((program.directory / "state").glob("**/*.jsonl"))
        assert len(journals) == 2
        by_file = told(program, str(journals[1]), "--gpus", "1")
        by_id = told(program, journals[1].stem, "--gpus", "1")
        assert by_id["trace"] == f"run {journals[1].stem}"
        assert by_id["policies"] == by_file["policies"]
        assert (by_file["jobs"], by_file["estimates"]) == (2, "past")  # a job without a GPU is none
        of_all = told(program, "history", "--gpus", "1")
        assert (of_all["trace"], of_all["jobs"]) == ("your history", 4)

    def test_many_invented_ones(self, program: Program) -> None:
        args = ("--synthetic", "jobs=20 gap=25 time=10-1000 gpus=1,2 users=3", "--gpus", "2", "--repeat", "30")
        found = told(program, *args, "--policy", "fifo", "sjf", "aged:2", "fair")
        assert (found["jobs"], found["workloads"]) == (600, 30)
        assert [each["policy"] for each in found["policies"]] == ["fifo", "sjf", "aged:2", "fair"]
        assert found["policies"][1]["wait"]["mean"] < found["policies"][0]["wait"]["mean"]
        assert told(program, *args, "--policy", "fifo", "sjf", "aged:2", "fair") == found
        assert told(program, *args, "--policy", "fifo", "--seed", "2")["policies"] != found["policies"][:1]

    def test_workloads_in_which_no_job_fits_are_left_out(self, program: Program) -> None:
        args = ("--synthetic", "jobs=1 gpus=1,16", "--gpus", "8", "--repeat", "10", "--policy", "fifo")
        assert b"USED" in program.run("simulate", *args).stdout
        [fifo] = told(program, *args)["policies"]
        assert 0 < fifo["jobs"] < 10
        assert fifo["utilisation"] == pytest.approx(1 / 8)

    def test_labels_of_a_trace_are_its_users(self, program: Program) -> None:
        lines = [f"0,10,1,{user}" for user in "aaaabbbb"]
        (program.directory / "t.csv").write_text("submit,duration,gpus,user\n" + "\n".join(lines))
        fifo, fair = told(program, "t.csv", "--gpus", "1", "--policy", "fifo", "fair")["policies"]
        assert fair["fairness"] > fifo["fairness"]
        args = ("t.csv", "--gpus", "1", "--policy", "fair", "--fair-by", "source")
        assert told(program, *args)["policies"][0]["wait"] == fifo["wait"]

    def test_what_is_known_of_lengths_decides_the_order(self, program: Program) -> None:
        text = "submit,duration,requested\n0,50,9\n1,30,5\n1,10,90\n"
        (program.directory / "t.csv").write_text(text)
        waits = {
            known: told(program, "t.csv", "--gpus", "1", "--policy", "sjf", "--estimates", known)["policies"][0]["wait"]
            for known in ("exact", "requested", "none")
        }
        assert (waits["exact"]["max"], waits["requested"]["max"], waits["none"]["max"]) == (59, 79, 79)


def test_the_table_and_json_tell_the_same(program: Program) -> None:
    args = ("--synthetic", "jobs=300 gpus=1,2,16 users=4", "--gpus", "8")
    found, table = told(program, *args), shown(program, *args)
    assert [*found] == ["trace", "jobs", "workloads", "gpus", "estimates", "remarks", "policies"]
    [remark] = found["remarks"]
    assert "wider than 8 GPUs" in remark
    assert "the widest needs 16" in remark
    assert remark in table
    assert f"{found['jobs']:,} jobs" in table
    lines = table.splitlines()
    for each in found["policies"]:
        assert row(each["policy"], measures_of(each)) in lines
    assert lines[-1].startswith("Under priority and sjf a job may wait forever")
    assert "forever" not in shown(program, *args, "--policy", "fifo", "hrrn")


def test_the_table_holds_what_was_reckoned_by_hand(program: Program, trace: str) -> None:
    """The wide job waits from 5 to 100 and ends at 110; 130 of 220 GPU-seconds are used."""
    [line] = [each for each in shown(program, trace, "--gpus", "2", "--policy", "fifo").splitlines() if "fifo" in each]
    numbers = re.findall(r"[\d.]+", line)
    assert {"95", "110", "59.1"} <= {*numbers}
    assert numbers[-3:-1] == ["110", "59.1"]


class TestThePicture:
    @pytest.mark.parametrize(("name", "begin"), [("waits.png", b"\x89PNG\r\n\x1a\n"), ("waits.svg", b"<?xml")])
    def test_is_written_whole(self, program: Program, trace: str, name: str, begin: bytes) -> None:
        pytest.importorskip("matplotlib")
        shown(program, trace, "--gpus", "2", "--plot", name)
        picture = (program.directory / name).read_bytes()
        assert picture.startswith(begin)
        if name.endswith("svg"):
            assert b"</svg>" in picture[-20:]
        assert {each.name for each in program.directory.glob("waits*")} == {name}

    @pytest.mark.parametrize("name", ["t\udcff.csv", "训练.csv", "a$b_{$.csv"])
    def test_shows_any_name_of_a_trace(self, program: Program, trace: str, name: str) -> None:
        pytest.importorskip("matplotlib")
        shutil.copy(program.directory / trace, os.fsencode(program.directory / name))
        done = program.run("simulate", name, "--gpus", "2", "--policy", "fifo", "--plot", "p.svg")
        assert (done.returncode, done.stderr) == (0, b"")
        assert (program.directory / "p.svg").exists()

    def test_without_matplotlib_it_says_how_to_get_it_before_it_simulates(self, program: Program, trace: str) -> None:
        call = CALL.replace("report", "simulate")
        without = f"import sys\nsys.modules['matplotlib'] = None\n{call}"
        done = subprocess.run(
            [sys.executable, "-c", without, trace, "--plot", "x.svg"],
            cwd=program.directory, check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        [line] = done.stderr.splitlines()
        assert "[plot]" in line


WRONG = {
    "no such file": (("there/is/none.csv",), "none.csv"),
    "a directory": ((".",), "'.'|. is|file ."),
    "a binary file": (("binary",), "binary"),
    "an empty file": (("empty.csv",), "empty.csv"),
    "a header only": (("header.csv",), "no job"),
    "a negative duration": (("negative.csv",), "line 3"),
    "an unknown policy": (("trace.csv", "--policy", "first"), "first"),
    "an unknown policy behind one": (("trace.csv", "--policy", "fifo", "first"), "first"),
    "a number for sjf": (("trace.csv", "--policy", "sjf:2"), "aged"),
    "a broken number": (("trace.csv", "--policy", "aged:nan"), "nan"),
    "learned of nothing": (("trace.csv", "--policy", "learned"), "file"),
    "learned of no file": (("trace.csv", "--policy", "learned:none"), "none"),
    "learned of a broken file": (("trace.csv", "--policy", "learned:trace.csv"), "not JSON"),
    "repeat with a trace": (("trace.csv", "--repeat", "2"), "--synthetic"),
    "two workloads": (("trace.csv", "--synthetic", "jobs=1"), "choose one"),
    "none": ((), "--synthetic"),
    "wrong words": (("--synthetic", "jobs=x"), "jobs"),
    "estimates that are not there": (("trace.csv", "--estimates", "requested"), "--estimates"),
    "no GPU": (("trace.csv", "--gpus", "0"), "--gpus"),
    "an unwritable picture": (("trace.csv", "--gpus", "2", "--plot", "none/x.svg"), "none/x.svg"),
    "a picture of another kind": (("trace.csv", "--plot", "x.gif"), ".png"),
    "no run": (("20260101",), "20260101|run"),
    "no history": (("history",), "history"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.usefixtures("trace")
def test_what_is_wrong_is_reported_in_a_sentence(program: Program, what: str) -> None:
    files = {"binary": bytes(range(256)) * 9, "empty.csv": b"", "header.csv": HEADER.encode()}
    files["negative.csv"] = f"{HEADER}0,1,1\n1,-5,1\n".encode()
    for name, data in files.items():
        (program.directory / name).write_bytes(data)
    args, word = WRONG[what]
    done = program.run("simulate", *args)
    assert done.returncode == 2
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("simple_gpu_scheduler: ")
    assert any(each in line for each in word.split("|"))
    assert "Traceback" not in line


def test_messages_about_wrong_input_are_safe_to_print(program: Program) -> None:
    (program.directory / "\x1b[31m.csv").write_text("\x1b[31mred")
    for args in (["\x1b[31m.csv"], ["--synthetic", "jobs=1", "--policy", "learned:\x1b[31m.csv"]):
        assert b"\x1b" not in program.run("simulate", *args).stderr


def test_a_reader_that_goes_away_ends_it_without_a_word(program: Program) -> None:
    process = program.start("simulate", "--synthetic", "jobs=3000", "--gpus", "4")
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline().startswith(b"synthetic")
    process.stdout.close()
    assert process.wait(60) != 0
    assert b"Traceback" not in process.stderr.read()


def test_a_full_disk_is_reported(program: Program, trace: str) -> None:
    with open("/dev/full", "wb") as full:
        done = program.run("simulate", trace, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode != 0
    [line] = done.stderr.decode().splitlines()
    assert "No space left" in line
