"""Jobs with `mem=auto`, whose memory others of their kind tell: in the same run, and in later ones."""

import json
import subprocess
from typing import Any

import pytest

from tests.conftest import HYPERSEARCH, Program, until
from tests.program.test_sharing_gpus import NOTED, Shared
from tests.support.nvml import GIB, Process, StandIn, a_gpu

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

# Fails unless it is alone.
LONELY = "[ $(ls | grep -c ^on) = 0 ] && touch on$SGS_JOB && sleep 0.1 && rm on$SGS_JOB #: mem=auto\n"
THREE = ("--jobs-per-gpu", "3")


def running(program: Program) -> list[dict[str, Any]]:
    """In the active run."""
    reports = json.loads(program.run("status", "--json").stdout)
    return [job for report in reports if report["alive"] for job in report["running"]]


def peak(program: Program) -> int:
    """What was measured of the only job; 0 before it has run for a second, since of shorter ones nothing is told."""
    [job] = running(program)
    if job["runtime"] < 1.1:
        return 0
    gpus = job.get("measured", {}).get("gpus", [{}])
    return int(gpus[0].get("memory", {}).get("max", 0)) if gpus else 0


def use(program: Program, nvml: StandIn, shared: Shared, job: int, memory: int) -> None:
    """This job uses so much memory, until that was seen, and ends."""
    nvml.show([a_gpu(0, used=memory, processes=[Process(shared.pid(job), memory)])])
    until(lambda: peak(program) == memory, "its memory was measured")
    shared.end(job)
    nvml.show([a_gpu(0)])


def starts(program: Program) -> dict[int, dict[str, Any]]:
    """The last start of each job, by the newest journal."""
    newest = max(program.directory.rglob("runs/*.jsonl"), key=lambda path: path.name)
    records = [json.loads(line) for line in newest.read_text().splitlines()]
    return {each["job"]: each for each in records if each["event"] == "job started"}


@pytest.mark.parametrize("args", [(), ("--mem", "auto")])
def test_the_first_job_is_alone_and_tells_the_others_and_later_runs_what_they_need(
    program: Program, idle_gpus: StandIn, args: tuple[str, ...]
) -> None:
    idle_gpus.show([a_gpu(0)])
    need = "" if args else "mem=auto"
    shared = Shared(program, [need] * 5, *THREE, *args)
    shared.runs(1)
    assert running(program)[0]["alone"] is True
    assert "mem" not in running(program)[0]
    assert b", alone on its GPU (mem=auto): job 1: " in program.run("status").stdout
    assert shared.words.read_text().count("jobs with mem=auto run alone on their GPUs until one of their kind") == 1
    use(program, idle_gpus, shared, 1, 20 * GIB)
    shared.runs(2, 3, 4)
    assert [(each["mem"], each.get("alone")) for each in running(program)] == [(24 * GIB, None)] * 3
    assert b"alone on" not in program.run("status").stdout
    assert shared.words.read_text().count(" are given 24.0 GiB (20.0 GiB measured, and a fifth)") == 1
    shared.end(2, 3, 4, 5)
    assert shared.process.wait(60) == 0
    begun = starts(program)
    assert begun[1]["alone"] is True
    assert {number: each.get("mem") for number, each in begun.items()} == {1: None} | dict.fromkeys(
        (2, 3, 4, 5), 24 * GIB
    )
    for path in program.directory.glob("go*"):
        path.unlink()
    later = Shared(program, [need] * 3, *THREE, *args)
    later.runs(1, 2, 3)
    later.end(1, 2, 3)
    assert later.process.wait(60) == 0


def test_what_jobs_need_decides_how_many_fit(program: Program, idle_gpus: StandIn) -> None:
    """A fifth more than 30 GiB fits twice into 80."""
    idle_gpus.show([a_gpu(0)])
    shared = Shared(program, ["mem=auto"] * 4, *THREE)
    shared.runs(1)
    use(program, idle_gpus, shared, 1, 30 * GIB)
    shared.runs(2, 3)
    assert [each["mem"] for each in running(program)] == [36 * GIB] * 2
    shared.end(2, 3, 4)
    assert shared.process.wait(60) == 0


def test_jobs_that_need_the_largest_gpu_run_alone_and_that_is_said_once(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    shared = Shared(program, ["mem=auto"] * 3, *THREE)
    shared.runs(1)
    use(program, idle_gpus, shared, 1, 70 * GIB)
    shared.runs(2)
    assert running(program)[0]["alone"] is True
    shared.end(2, 3)
    assert shared.process.wait(60) == 0
    assert shared.words.read_text().count("run alone on their GPUs: what was measured, and a fifth, is as much as") == 1


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--no-samples"], "this run takes no samples, so jobs with mem=auto run alone on their GPUs"),
        (["--no-journal"], "this run takes no samples, so jobs with mem=auto run alone on their GPUs"),
    ],
)
def test_without_measurements_every_job_is_alone_and_that_is_said_once(
    program: Program, idle_gpus: StandIn, args: list[str], why: str
) -> None:
    idle_gpus.show([a_gpu(0)])
    done = program.run(*THREE, *args, stdin=LONELY * 3)
    assert done.returncode == 0
    assert done.stderr.decode().count(why) == done.stderr.decode().count("mem=auto run alone") == 1


def test_without_nvml_every_job_is_alone_and_that_is_said_once(program: Program) -> None:
    done = program.run(*THREE, "--gpus", "0", "--ignore-occupancy", stdin=LONELY * 3)
    assert done.returncode == 0
    assert done.stderr.decode().count("this run does not use NVML, so jobs with mem=auto run alone on their GPUs") == 1


def test_a_job_that_tells_nothing_is_named_once(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    done = program.run(*THREE, stdin="true #: mem=auto\n" * 3)
    said = done.stderr.decode()
    assert done.returncode == 0
    assert said.count("how much memory it used on its GPU is unknown") == 1
    assert "job 1" in next(line for line in said.splitlines() if "how much memory" in line)


def test_a_run_with_one_job_on_each_gpu_says_nothing_of_it(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    done = program.run("--no-samples", stdin="true #: mem=auto\n" * 3)
    assert (done.returncode, b"alone" in done.stderr) == (0, False)


def test_a_run_that_runs_nothing_learns_nothing_and_does_not_say_so(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    jobs = "sleep 10; true #: mem=auto\n" * 3 + "sleep 10 #: mem=0\n" * 2
    done = program.run(*THREE, "--engine", "simulated", stdin=jobs)
    assert b"5 succeeded, 0 failed, 0 timed out, 0 not started in 40 s\n" in done.stderr
    assert b"memory" not in done.stderr
    assert program.run(*THREE, "--dry-run", stdin="true #: mem=auto\n").stdout == b"gpu 0: true\n"


def test_it_is_kept_where_jobs_are_printed_again(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    lines = b"true  #: mem=auto\ntrue 2  #: gpus=0 mem=auto\n"
    assert program.run(stdin=lines).returncode == 0
    [run] = [each["run"] for each in json.loads(program.run("history", "--json").stdout)]
    assert program.run("history", run, "--commands").stdout == lines
    jobs = json.loads(program.run("history", run, "--json").stdout)
    assert [each["options"] for each in jobs] == [{"mem_auto": True}, {"gpus": 0, "mem_auto": True}]
    sweep = subprocess.run(
        [*HYPERSEARCH, "true {a}  #: mem=auto", "-p", "a", "1", "2"], check=True, capture_output=True
    )
    assert sorted(sweep.stdout.splitlines()) == [b"true 1  #: mem=auto", b"true 2  #: mem=auto"]


def test_a_resumed_run_still_finds_it_out(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    shared = Shared(program, ["mem=auto"] * 3, *THREE)
    shared.runs(1)
    before = (program.directory / "pid1").read_text()
    program.run("stop", "--now")
    assert shared.process.wait(60) == 1
    again = program.start("--resume")
    program.feed(again, "")
    until(lambda: len(running(program)) == 1, "a job runs again")
    assert running(program)[0]["alone"] is True
    until(lambda: (program.directory / "pid1").read_text() != before, "its shell has come so far")
    use(program, idle_gpus, shared, 1, 20 * GIB)
    shared.runs(2, 3)
    shared.end(2, 3)
    assert again.wait(60) == 0


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("mem=automatic", "mem: 'automatic' is not a size; write 512M or 10G, or auto"),
        ("mem=auto,gpus=2", "mem: 'auto,gpus=2' is not a size; write 512M or 10G, or auto; separate options with"),
        ("mem_auto=1", "unknown option 'mem_auto'"),
    ],
)
def test_nonsense_is_refused_with_its_line(program: Program, idle_gpus: StandIn, option: str, problem: str) -> None:
    idle_gpus.show([a_gpu(0)])
    (program.directory / "jobs").write_text(f"echo started\necho big #: {option}\n")
    done = program.run("jobs")
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"  line 2 of jobs: {problem}" in done.stderr.decode()


def test_a_size_for_all_is_that_of_jobs_without_one(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    shared = Shared(program, ["", "mem=10G", "mem=0", ""], "--jobs-per-gpu", "4", "--mem", "40G")
    shared.runs(1, 2, 3)
    shared.end(1, 2, 3, 4)
    assert shared.process.wait(60) == 0
    refused = program.run("--mem", "81G", stdin="true\n")
    assert refused.returncode == 2
    assert "line 1: not started: mem= asks for 81.0 GiB, but the largest GPU has 80.0 GiB" in refused.stderr.decode()
    assert program.run("--mem", "lots", stdin="true\n").returncode == 2


def test_it_reaches_a_queue_that_is_submitted_to(program: Program) -> None:
    run = program.start(*THREE, "--gpus", "0", "--ignore-occupancy", "--follow", "q.fifo", "-q")
    until(lambda: (program.directory / "q.fifo").exists() and running(program) == [], "the run has begun")
    assert program.run("submit", "--to", "q.fifo", "--", "true #: mem=auto").returncode == 0
    until(lambda: starts(program), "the job was started")
    assert starts(program)[1]["alone"] is True
    program.run("stop")
    assert run.wait(60) == 0


def test_a_job_that_failed_is_alone_when_it_is_tried_again_in_a_resumed_run(
    program: Program, idle_gpus: StandIn
) -> None:
    idle_gpus.show([a_gpu(0)])
    lines = f"{NOTED}; [ $SGS_JOB-$SGS_ATTEMPT != 2-1 ] #: mem=auto\n"
    shared = Shared(program, [], *THREE)
    shared.process.wait(60)
    first = program.start(*THREE)
    program.feed(first, lines * 2)
    shared.runs(1)
    use(program, idle_gpus, shared, 1, 10 * GIB)
    shared.runs(2)
    shared.end(2)
    assert first.wait(60) == 1
    assert (starts(program)[2]["mem"], starts(program)[2].get("alone")) == (12 * GIB, None)
    assert program.run("--resume-failed").returncode == 0
    assert starts(program)[2]["attempt"] == 2
    assert (starts(program)[2]["mem"], starts(program)[2]["alone"]) == (12 * GIB, True)
