"""Jobs that hang: they are warned of or ended, and their logs say what is known."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import UNMEASURED, Program, has_text, until
from tests.support.nvml import StandIn, Steps, a_gpu

HANGS = "echo began; exec sleep 1000"
ONE = ("--gpus", "0")
MARK = "[simple_gpu_scheduler] | "
SLEEPS = f"exec {sys.executable} -c 'import time; print(1, flush=True); time.sleep(1000)'"


def journal(program: Program) -> list[dict]:
    [path] = (program.directory / "state").rglob("*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def of(program: Program, kind: str) -> list[dict]:
    return [record for record in journal(program) if record["event"] == kind]


def remarks(log: Path) -> list[str]:
    """What we wrote there, without the moment at the start of it."""
    lines = [line.removeprefix(MARK) for line in log.read_text().splitlines() if line.startswith(MARK)]
    return [line.partition(": ")[2] if line[:4].isdigit() else line for line in lines]


@pytest.fixture
def py_spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of this name, which the test has still to write."""
    path = tmp_path / "bin" / "py-spy"
    path.parent.mkdir()
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return path


def are_read(nvml: StandIn, times: int) -> None:
    """Wait until the GPUs were read so many times more."""
    function = "nvmlDeviceGetUtilizationRates"
    before = nvml.calls(function)
    until(lambda: nvml.calls(function) >= before + times, "the GPUs are read")


def write_script(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_job_whose_gpu_is_idle_is_ended_as_stalled_and_retried(program: Program, idle_gpus: StandIn) -> None:
    assert idle_gpus
    args = (*ONE, "--idle", "1s:end", "--retries", "1", "--logs", "logs", "--joblog", "jobs.tsv")
    done = program.run(*args, stdin=f"{HANGS}\n")
    assert done.returncode == 1
    said = done.stderr.decode().splitlines()
    how = "job 1 (line 1) stalled (its GPU was at 0 % for 1.0 s) after"
    assert [line.startswith(how) for line in said].count(True) == 2
    assert [", retrying: echo began" in line for line in said if line.startswith(how)] == [True, False]
    assert said[-1].startswith("0 succeeded, 0 failed, 0 timed out, 1 stalled, 0 not started in ")
    ends = of(program, "job ended")
    assert [(end["outcome"], end["reason"], end["final"]) for end in ends] == [
        ("stalled", "its GPU was at 0 % for 1.0 s", False),
        ("stalled", "its GPU was at 0 % for 1.0 s", True),
    ]
    assert [(seen["attempt"], seen["ends"]) for seen in of(program, "stall seen")] == [(1, True), (2, True)]
    assert of(program, "run ended")[0]["stalled"] == 1
    assert (program.directory / "jobs.tsv").read_text().splitlines()[1].split("\t")[6:8] == ["-1", "15"]
    log = program.directory / "logs" / "0001.log"
    first = remarks(log)[:3]
    assert first[:2] == ["its GPU was at 0 % for 1.0 s", "gpu 0: utilisation 0 %, memory 0.0 / 80.0 GiB, 30 °C, 60 W"]
    assert log.read_text().count(": stalled (its GPU was at 0 % for 1.0 s)\n") == 2
    run = of(program, "run began")[0]["run"]
    assert b"gpu 0, stalled (its GPU was at 0 % for 1.0 s) after" in program.run("report", run).stdout
    history = program.run("history", run, "--failed", "--json")
    assert [each["outcome"] for each in json.loads(history.stdout)] == ["stalled"]


def test_a_silent_job_at_a_constant_utilisation_is_warned_of_once(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0, utilization=100)])
    process = program.start(*ONE, "--stall", "1s", "--logs", "logs", "-q")
    program.feed(process, f"echo began; until [ -e go ]; do sleep 0.1; done\n{HANGS} #: idle=1s:end\n")
    log = program.directory / "logs" / "0001.log"
    until(has_text(log, "it continues after"), "it is warned of")
    are_read(idle_gpus, 4)  # it would be warned of again
    [report] = [each for each in json.loads(program.run("status", "--json").stdout) if each["alive"]]
    [stalled] = [each["stalled"] for each in report["running"]]
    shown = program.run("status").stdout.decode()
    assert f": seems stalled: {stalled['reason']}\n" in shown, shown
    assert report["began"] < stalled["at"] < report["last"]
    (program.directory / "go").touch()
    until(has_text(program.directory / "logs" / "0002.log", "it continues after"), "and so is the next job")
    process.terminate()
    assert process.stderr
    said = process.stderr.read().decode().splitlines()
    reason = "no output and a constant utilisation of 100 % for 1.0 s"
    assert said[0] == (
        f"job 1 (line 1) on gpu 0 seems stalled: {reason}; more is in its log: simple_gpu_scheduler logs 1; "
        "to end it: simple_gpu_scheduler cancel 1"
    )
    assert [line[:5] for line in said if "seems stalled" in line] == ["job 1", "job 2"]
    assert remarks(log)[0] == stalled["reason"] == reason
    assert [(seen["job"], seen["ends"]) for seen in of(program, "stall seen")] == [(1, False), (2, False)]


@pytest.mark.parametrize("output", ["files", "group", "tag"])
def test_a_job_that_prints_is_kept(program: Program, idle_gpus: StandIn, output: str) -> None:
    idle_gpus.show([a_gpu(0, utilization=100)])
    prints = "for i in $(seq 40); do echo $i; sleep 0.1; done"
    done = program.run(*ONE, "--stall", "2s:end", "--output", output, stdin=prints + "\n")
    assert done.returncode == 0, done.stderr
    assert of(program, "stall seen") == []


def test_a_job_whose_gpu_works_is_kept(program: Program, idle_gpus: StandIn) -> None:
    values = [(10 + 20 * (second % 3), 1.0) for second in range(30)]
    idle_gpus.show([a_gpu(0, utilization=Steps(time.time(), [*values, (0, None)]))])
    args = (*ONE, "--stall", "3s:end", "--idle", "3s:end", "--logs", "logs")
    assert program.run(*args, stdin="sleep 6\n").returncode == 0
    assert of(program, "stall seen") == []


@pytest.mark.parametrize("output", ["group", "tag"])
def test_what_is_written_to_its_log_is_not_shown_as_its_output(
    program: Program, idle_gpus: StandIn, output: str
) -> None:
    assert idle_gpus
    job = "echo began; sleep 4; echo over"
    done = program.run(*ONE, "--idle", "1s", "--output", output, stdin=job + "\n")
    tag = "[1] " if output == "tag" else ""
    assert (done.returncode, done.stdout.decode()) == (0, f"{tag}began\n{tag}over\n")
    [log] = (program.directory / "state").rglob("0001.log")
    assert remarks(log)[0] == "its GPU was at 0 % for 1.0 s"


def test_a_cpu_job_that_prints_nothing_and_uses_no_cpu_time_stalls(program: Program, idle_gpus: StandIn) -> None:
    assert idle_gpus
    args = ("--stall", "2s:end", "--idle", "2s:end", "--logs", "logs")
    done = program.run(*args, stdin=f"{HANGS} #: gpus=0\n")
    assert "stalled (no output and no CPU time used for 2.0 s) after" in done.stderr.decode()


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ('echo "Thread $3 of $2:"; echo "    step (train.py:7)"', ["Thread {pid} of --pid:", "    step (train.py:7)"]),
        ('echo "Error: Permission Denied" >&2; exit 1', ["Error: Permission Denied"]),
        ("echo began; exec sleep 1000", ["began", "it did not answer in time and was killed"]),
    ],
    ids=["works", "may not", "hangs"],
)  # fmt: skip
def test_the_stacks_of_its_python_processes_go_to_its_log(
    program: Program, idle_gpus: StandIn, py_spy: Path, script: str, lines: list[str]
) -> None:
    assert idle_gpus
    write_script(py_spy, script)
    program.run(*ONE, "--idle", "1s:end", "--logs", "logs", stdin=f"echo $$ > pid; {SLEEPS}\n")
    pid = (program.directory / "pid").read_text().strip()
    said = remarks(program.directory / "logs" / "0001.log")
    at = said.index(f"py-spy dump --pid {pid}")
    assert said[at + 1 : -1] == [f"  {line.format(pid=pid)}" for line in lines]
    assert said[-1].startswith("it is ended after ")


def test_without_py_spy_its_log_says_what_would_help(program: Program, idle_gpus: StandIn) -> None:
    assert idle_gpus
    path = program.directory / "empty"
    path.mkdir()
    program.run(*ONE, "--idle", "1s:end", "--logs", "logs", stdin=f"{SLEEPS}\n", env={**os.environ, "PATH": str(path)})
    said = remarks(program.directory / "logs" / "0001.log")
    assert "py-spy is not on PATH; with it, the stacks of the Python processes would be here" in said


def test_a_survivor_counts_from_the_resumption_on(program: Program, idle_gpus: StandIn) -> None:
    (program.directory / "jobs").write_text(f"touch began; {HANGS}\n")
    args = (*ONE, "--idle", "4s:end", "--logs", "logs", "jobs")
    process = program.start(*args, env={**UNMEASURED, **idle_gpus.environment}, stdin=subprocess.DEVNULL)
    until((program.directory / "began").exists, "its job runs")
    are_read(idle_gpus, 3)  # which does not count
    process.kill()
    process.wait()
    began = time.monotonic()
    done = program.run("--resume")
    assert time.monotonic() - began > 4
    assert "stalled (its GPU was at 0 % for 4.0 s) after" in done.stderr.decode()
    assert of(program, "job ended")[-1]["outcome"] == "stalled"


NO_LOGS = "needs the jobs' output in logs; add --output files (or group, or tag), or --logs DIR"
UNMEASURABLE = "needs the utilisation of GPUs, which is not measured with"
UUID = ("--gpus", a_gpu(0).uuid)


@pytest.mark.parametrize(
    ("args", "line", "problem"),
    [
        (["--stall", "1m"], "", f"--stall {NO_LOGS}"),
        ([], " #: stall=1m", f"line 1 of jobs: stall= {NO_LOGS}"),
        (["--stall", "1m", "--output", "inherit"], "", f"--stall {NO_LOGS}"),
        (["--idle", "1m", "--no-samples"], "", f"--idle {UNMEASURABLE} --no-samples or SGS_NO_SAMPLES; leave that out"),
        (["--stall", "1m", "--logs", "logs", "--no-journal"], "", f"--stall {UNMEASURABLE} --no-journal"),
        ([*UUID, "--ignore-occupancy", "--idle", "1m"], "", f"--idle {UNMEASURABLE} --ignore-occupancy"),
        (["--idle", "1m:kill"], "", "'1m:kill' is not understood; write 30m to be warned, or 30m:end to end the job"),
        (["--idle", "0.1"], "", "'0.1' is too short: GPUs are read once a second; write 1s or more, or 0 for no limit"),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_refused_before_anything_starts(
    program: Program, idle_gpus: StandIn, args: list[str], line: str, problem: str
) -> None:
    assert idle_gpus
    (program.directory / "jobs").write_text(f"touch began{line}\n")
    done = program.run(*args, "jobs")
    assert (done.returncode, (program.directory / "began").exists()) == (2, False)
    assert problem in " ".join(done.stderr.decode().split())
    assert not list((program.directory / "state").rglob("*.jsonl"))


def test_without_nvml_it_is_refused_too(program: Program) -> None:
    done = program.run("--gpus", "0", "--idle", "1m", stdin="touch began\n")
    assert (done.returncode, (program.directory / "began").exists()) == (2, False)
    assert b"--idle needs the utilisation of GPUs, which is unknown: NVML was not found" in done.stderr


def test_0_turns_it_off_and_a_dry_run_takes_it(program: Program, idle_gpus: StandIn) -> None:
    assert idle_gpus
    assert program.run("--idle", "1s:end", "--no-samples", "--dry-run", stdin="true\n").returncode == 0
    simulated = program.run(*ONE, "--engine", "simulated", "--idle", "1s:end", stdin="sleep 1000\n")
    assert (simulated.returncode, b"has no effect" in simulated.stderr) == (0, False)
    assert program.run(*ONE, "--stall", "0", "--idle", "1s:end", stdin="sleep 3 #: idle=0\n").returncode == 0


def test_the_options_of_a_line_are_kept_in_the_journal_and_written_back(program: Program, idle_gpus: StandIn) -> None:
    assert idle_gpus
    job = "echo 1  #: stall=1h30m:end idle=0s"
    assert program.run(*ONE, "--logs", "logs", stdin=f"#: idle=15m\n{job}\n#:\n").returncode == 0
    run = of(program, "run began")[0]["run"]
    assert program.run("history", run, "--commands").stdout.decode() == "echo 1  #: stall=90m:end idle=0s\n"
    [job_read] = of(program, "job read")
    assert (job_read["stall"], job_read["idle"]) == ("90m:end", "0s")
