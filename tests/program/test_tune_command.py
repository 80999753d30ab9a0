"""`tune` and `--learn`, and what earlier runs tell of how long jobs take."""

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from simple_gpu_scheduler.cli.call import call
from simple_gpu_scheduler.cli.commands import tune as tune_module
from simple_gpu_scheduler.cli.commands.tune import tune_command
from simple_gpu_scheduler.simulation.learn import search
from tests.conftest import UNMEASURED, Program

LONG_THEN_SHORT = "0,100,1\n" + "1,90,1\n2,1,1\n3,1,1\n" * 4
MANY = "submit,duration,gpus\n" + "".join(f"{7 * n},{(n * 37) % 50 + 1},1\n" for n in range(700))
QUEUES = ("--synthetic", "jobs=10 gap=25 time=10-1000", "--gpus", "2", "--repeat", "60")


def trace_of(program: Program, rows: str, name: str = "t.csv") -> str:
    (program.directory / name).write_text(f"submit,duration,gpus\n{rows}")
    return name


def advice(program: Program, *args: str) -> str:
    done = program.run("tune", *args)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def told(program: Program, *args: str) -> dict:
    return json.loads(advice(program, *args, "--json"))


class TestWhatItSays:
    def test_of_no_history_at_all(self, program: Program) -> None:
        done = program.run("tune")
        assert (done.returncode, done.stdout) == (2, b"")
        [line] = done.stderr.decode().splitlines()
        assert "no runs yet" in line

    @pytest.mark.parametrize("rows", ["0,10,1\n", "0,10,1\n5,10,1\n11,1,1\n"])
    def test_where_no_job_would_have_waited(self, program: Program, rows: str) -> None:
        text = advice(program, trace_of(program, rows), "--gpus", "2")
        assert "No job would have waited" in text
        assert "Best" not in text

    def test_of_two_jobs_that_it_is_not_sure_at_all(self, program: Program) -> None:
        text = advice(program, trace_of(program, "0,10,1\n0,5,1\n"), "--gpus", "1")
        assert "Best: --policy aged --ageing" in text
        assert "Confidence: none" in text
        assert "would have been 2.5 s instead of 5.0 s under fifo" in text
        found = told(program, "t.csv", "--gpus", "1")
        assert (found["is_sure"], found["parts"], found["best"][:5]) == (False, 1, "aged:")

    def test_that_fifo_is_best_where_it_is(self, program: Program) -> None:
        rows = "".join(f"{at},10,1\n" for at in range(60))
        text = advice(program, trace_of(program, rows), "--gpus", "1")
        assert "Best: --policy fifo, the default." in text
        found = told(program, "t.csv", "--gpus", "1")
        assert (found["best"], found["is_sure"]) == ("fifo", False)

    def test_of_many_that_it_is_sure_and_what_it_would_cost(self, program: Program) -> None:
        text = advice(program, *QUEUES)
        assert re.search(r"Best: --policy (aged --ageing \S+|hrrn)\. The mean wait would have been", text)
        assert "Cost: the longest wait" in text
        assert "Confidence: significantly better than fifo" in text
        assert "not significantly" not in text
        assert "sjf would have waited" in text
        assert "may wait forever" in text

    def test_that_what_differs_by_a_hair_is_no_better(self, program: Program) -> None:
        rows = "".join(f"{n * 0.1:.1f},10.1,1,{'ab'[n * n % 3 % 2]}\n" for n in range(30))
        (program.directory / "t.csv").write_text(f"submit,duration,gpus,user\n{rows}")
        assert "Best: --policy fifo" in advice(program, "t.csv", "--gpus", "1")

    def test_by_what_is_shared_when_that_is_best(self, program: Program) -> None:
        """A stream of one kind that takes all, and now and then something short of another."""
        rows = "".join(f"{10 * n},100,1,a\n" + f"{10 * n + 1},1,1,b\n" * (n % 3 == 0) for n in range(90))
        (program.directory / "t.csv").write_text(f"submit,duration,gpus,command\n{rows}")
        text = advice(program, "t.csv", "--gpus", "2", "--fair-by", "template", "--estimates", "none")
        assert "Best: --policy fair --fair-by template." in text or "round-robin --fair-by template." in text

    def test_of_history_also_where_a_file_has_that_name(self, program: Program) -> None:
        (program.directory / "history").mkdir()
        assert b"no runs yet" in program.run("tune").stderr

    def test_the_best_is_never_one_under_which_a_job_may_starve(self, program: Program) -> None:
        found = told(program, *QUEUES)
        waits = {each["policy"]: each["wait"]["mean"] for each in found["policies"]}
        safe = {each["policy"] for each in found["policies"] if not each["may_starve"]}
        assert {"sjf"} == set(waits) - safe
        assert found["best"] == min(safe, key=waits.__getitem__)
        base = waits["fifo"]
        for each in found["policies"]:
            assert each["difference"] == pytest.approx(each["wait"]["mean"] - base)
            assert 0 <= each["wins"] <= found["parts"] == 60


class TestLearn:
    """With a hundredth of the budget, in this process."""

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(tune_module, "learn", partial(search.learn, budget=20_000))
        monkeypatch.chdir(tmp_path)

    def tune(self, *args: str) -> None:
        assert call(tune_command, args, "tune") == 0

    def test_writes_what_a_run_and_simulate_load(self, program: Program, capsys: pytest.CaptureFixture[str]) -> None:
        self.tune(*QUEUES, "--learn", "w.json")
        text = capsys.readouterr().out
        assert "saved in w.json (--policy learned:w.json)" in text
        assert "on workloads of other seeds: learned " in text
        done = program.run("simulate", *QUEUES, "--policy", "learned:w.json", "sjf", "--json")
        learned, sjf = json.loads(done.stdout)["policies"]
        assert learned["policy"] == "learned:w.json"
        assert learned["wait"]["mean"] <= 1.1 * sjf["wait"]["mean"]
        done = program.run("--gpus", "0", "--policy", "learned:w.json", stdin="sleep 0.1 #: time=9\ntrue #: time=1\n")
        assert done.returncode == 0
        assert done.stderr.index(b"`true") < done.stderr.index(b"`sleep")

    def test_is_honest_where_nothing_better_was_found(self, capsys: pytest.CaptureFixture[str]) -> None:
        alike = ("--synthetic", "jobs=10 gap=5 time=60-60", "--gpus", "2", "--repeat", "40")
        self.tune(*alike, "--learn", "w.json")
        text = capsys.readouterr().out
        assert "Found nothing significantly better than sjf" in text
        assert "learned neither beats nor loses to fifo" in text
        assert "It is not significantly better than fifo; use that instead." in text

    @pytest.mark.unmeasured
    def test_the_same_seed_writes_the_same_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("t.csv").write_text(MANY)
        for workload in (QUEUES, ("t.csv", "--gpus", "3")):
            for name in ("a.json", "b.json"):
                self.tune(*workload, "--learn", name, "--seed", "4", "--json")
            one, other, _ = re.split(r"(?<=^\})\n", capsys.readouterr().out, flags=re.MULTILINE)
            assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
            assert one == other
            exams = json.loads(one)["learned"]
            assert {each["policy"] for each in exams} >= {"sjf", json.loads(one)["best"]}
            assert all({"exam", "policy", "wait", "difference", "error"} == {*each} for each in exams)

    def test_of_one_trace_it_learns_from_the_first_half(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("t.csv").write_text(MANY)
        self.tune("t.csv", "--gpus", "3", "--learn", "w.json")
        text = capsys.readouterr().out
        assert "on parts of the second half: learned" in text
        assert "on the second half as a whole: learned" in text

    def test_of_too_little_it_says_why_it_cannot(self, program: Program) -> None:
        done = program.run("tune", trace_of(program, LONG_THEN_SHORT), "--gpus", "1", "--learn", "w.json")
        assert done.returncode == 2
        [line] = done.stderr.decode().splitlines()
        assert "to learn from" in line
        assert not (program.directory / "w.json").exists()

    def test_no_file_but_weights_is_written_over(self, program: Program) -> None:
        (program.directory / "t.csv").write_text(MANY)
        for name in ("t.csv", "/dev/null", ".", "t/", ""):
            done = program.run("tune", "t.csv", "--gpus", "3", "--learn", name)
            assert (done.returncode, done.stdout) == (2, b"")
            assert name.encode() in done.stderr
        assert (program.directory / "t.csv").read_text() == MANY

    def test_an_unwritable_place_is_reported_first(self, program: Program) -> None:
        done = program.run("tune", *QUEUES[:4], "--repeat", "14", "--learn", "none/w.json", timeout=120)
        assert done.returncode == 2
        [line] = done.stderr.decode().splitlines()
        assert "none/w.json" in line
        assert "Traceback" not in line


def order(program: Program, text: str, *args: str) -> list[str]:
    done = program.run("--gpus", *args, stdin=text)
    assert done.returncode == 0, done.stderr
    return re.findall(r"^Processing command `(.*?)(?: #:.*)?`", done.stderr.decode(), re.MULTILINE)


class TestWhatEarlierRunsTell:
    TWO = "sh slow.sh 1\nsh quick.sh 1\n"

    @pytest.fixture(autouse=True)
    def _commands(self, program: Program) -> None:
        (program.directory / "slow.sh").write_text("sleep 0.3")
        (program.directory / "quick.sh").write_text("exit")

    def test_shortest_first_knows_what_took_long_before(self, program: Program) -> None:
        first = ["sh slow.sh 1", "sh quick.sh 1"]
        assert order(program, self.TWO, "0", "--policy", "sjf") == first
        again = self.TWO.replace("1", "2")
        assert order(program, again, "0") == ["sh slow.sh 2", "sh quick.sh 2"]
        assert order(program, again, "0", "--policy", "sjf") == ["sh quick.sh 2", "sh slow.sh 2"]
        found = told(program, "--gpus", "1")
        assert (found["trace"], found["jobs"], found["estimates"]) == ("your history", 6, "past")
        assert "your history: 6 jobs on 1 GPU" in advice(program, "--gpus", "1")

    def test_what_is_in_the_directory_of_runs_and_is_none_harms_nothing(self, program: Program) -> None:
        order(program, self.TWO, "0")
        runs = program.directory / "state" / "simple_gpu_scheduler" / "runs"
        [journal] = runs.glob("*.jsonl")
        (runs / "20990101-000000-aaaaaa.jsonl").write_bytes(bytes(range(256)) * 99)
        (runs / "20990101-000000-bbbbbb.jsonl").write_text('{"event":"run began"\n[]\n{"event":"job ended","job":[]}\n')
        (runs / "20990101-000000-cccccc.jsonl").mkdir()
        (runs / "20990101-000000-dddddd.jsonl").symlink_to("/nowhere")
        (runs / "notes.txt").write_text("not ours")
        with open(journal, "ab") as torn:
            torn.write(b'{"event":"job ended","job":1,"outc')
        assert order(program, self.TWO, "0", "--policy", "sjf") == ["sh quick.sh 1", "sh slow.sh 1"]
        done = program.run("tune", "--gpus", "1")
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
        assert b"4 jobs on 1 GPU" in done.stdout

    @pytest.mark.parametrize("is_known", [True, False])
    def test_it_may_come_late_and_lets_a_short_job_pass_a_wide_one(self, program: Program, *, is_known: bool) -> None:
        if is_known:
            order(program, "sh quick.sh 7\n", "0")
        jobs = "sleep 1.5 #: time=1.5\ntrue #: gpus=2\nsh quick.sh 8\n"
        found = order(program, jobs, "0", "1")
        assert found == (["sleep 1.5", "sh quick.sh 8", "true"] if is_known else ["sleep 1.5", "true", "sh quick.sh 8"])


class TestFile:
    def test_is_read_without_numpy_or_the_simulator(self):
        script = "import sys, simple_gpu_scheduler.scheduling.policies.learned; print(*sys.modules, sep='\\n')"
        loaded = subprocess.run(
            [sys.executable, "-c", script], env=UNMEASURED, capture_output=True, text=True, check=True
        ).stdout
        assert not {"numpy", "random", "statistics", "simple_gpu_scheduler.simulation.simulate"} & set(loaded.split())
