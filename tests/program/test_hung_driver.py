"""A driver that does not answer: it holds up nothing but the GPUs that it does not answer about, and that is said."""

import json
import os
import signal
from collections.abc import Mapping

import pytest

from tests.conftest import UNMEASURED, Program, until
from tests.program.test_free_gpus import HOLDS, Run
from tests.support.leased import Python, python_programs  # noqa: F401
from tests.support.nvml import GPU_IS_LOST, UNKNOWN, StandIn, a_gpu

PROCESSES = "nvmlDeviceGetComputeRunningProcesses_v2"  # what only a look asks for
INIT = ("nvmlInit_v2", "nvmlInitWithFlags")
HANGS = a_gpu(0, hangs=[PROCESSES])
SILENT = "the NVIDIA driver has not answered for "
SHOW_AND_HOLD = f"echo $CUDA_VISIBLE_DEVICES; echo $CUDA_VISIBLE_DEVICES >> began; {HOLDS}"


def status(program: Program) -> str:
    """It must answer while the driver does not."""
    return program.run("status").stdout.decode()


def have_begun(program: Program, gpus: set[str]) -> None:
    began = program.directory / "began"
    until(lambda: began.exists() and set(began.read_text().split()) == gpus, f"jobs run on {gpus}")


def test_a_gpu_that_hangs_is_not_used_until_it_answers_and_the_others_are(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([HANGS, a_gpu(1)])
    run = Run(program, "echo $CUDA_VISIBLE_DEVICES\n" * 6 + SHOW_AND_HOLD * 2)
    run.says(f"waiting: gpu 0: {SILENT}")
    have_begun(program, {"1"})
    said = status(program)
    assert f"waiting: gpu 0: {SILENT}" in said
    assert "1 running, 1 waiting, 6 succeeded" in said
    idle_gpus.show([a_gpu(0), a_gpu(1)])
    have_begun(program, {"0", "1"})
    assert len(run.waits) == 1
    (program.directory / "go").touch()
    code, shown = run.end()
    assert (code, sorted(shown)) == (0, ["0", *["1"] * 7])


def test_a_run_whose_gpus_all_hang_answers_and_can_be_stopped(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(index) for index in range(8)], hangs=[PROCESSES])
    run = Run(program, "true\n" * 16)
    run.says("waiting: gpu 0: ")
    assert all(f"gpu {index}: {SILENT}" in run.waits[0] for index in range(8))
    assert "0 running, 16 waiting" in status(program)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == (130, [])
    run.says("16 jobs left; continue with: ")
    assert idle_gpus.calls(PROCESSES) == 8


def test_a_look_at_a_gpu_of_ours_that_hangs_holds_up_nothing(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0), a_gpu(1)])
    run = Run(program, SHOW_AND_HOLD * 2)
    have_begun(program, {"0", "1"})
    asked = idle_gpus.calls(PROCESSES)
    idle_gpus.show([HANGS, a_gpu(1)])
    until(lambda: idle_gpus.calls(PROCESSES) >= asked + 4, "it has looked at both, and at the other one again")
    assert "2 running" in status(program)
    run.process.send_signal(signal.SIGINT)
    run.says("Ctrl-C: stopping; no new jobs, waiting for 2 running jobs")
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == 130


@pytest.mark.parametrize(
    ("at_first", "then", "hangs"),
    [({"*": GPU_IS_LOST}, {"*": GPU_IS_LOST}, INIT), ({"nvmlDeviceGetUUID": UNKNOWN}, {}, ["nvmlDeviceGetUUID"])],
    ids=["initialised again", "identified"],
)
def test_a_driver_that_hangs_when_a_gpu_that_did_not_work_is_looked_for_again_holds_up_nothing(
    program: Program, idle_gpus: StandIn, at_first: Mapping[str, int], then: Mapping[str, int], hangs: list[str]
) -> None:
    idle_gpus.show([a_gpu(0), a_gpu(1)] if then else [a_gpu(0, errors=at_first), a_gpu(1)])
    run = Run(program, SHOW_AND_HOLD.replace("go", "first") + SHOW_AND_HOLD * 2)
    have_begun(program, {"0", "1"} if then else {"1"})
    idle_gpus.show([a_gpu(0, errors=then, hangs=[] if then else hangs), a_gpu(1)], hangs=hangs if then else ())
    (program.directory / "first").touch()
    run.says(f"gpu 0: {SILENT}")
    assert f"gpu 0: {SILENT}" in status(program)
    idle_gpus.show([a_gpu(0), a_gpu(1)])
    until(lambda: "2 running, 0 waiting" in status(program), "both are used")
    (program.directory / "go").touch()
    assert run.end()[0] == 0


def test_nvml_is_not_closed_under_a_call_that_hangs(program: Program, idle_gpus: StandIn) -> None:
    lost = a_gpu(1, errors={"*": GPU_IS_LOST})
    idle_gpus.show([HANGS, a_gpu(1)])
    run = Run(program, f"{HOLDS}true #: gpus=2\n")
    run.says(f"waiting: gpu 0: {SILENT}")
    idle_gpus.show([HANGS._replace(used=1), lost])
    (program.directory / "go").touch()
    until(lambda: any(SILENT in said and "fallen off" in said for said in run.waits), "it waits for both")
    looks = idle_gpus.calls("nvmlDeviceGetMemoryInfo_v2")
    until(lambda: idle_gpus.calls("nvmlDeviceGetMemoryInfo_v2") > looks + 2, "it would be initialised again")
    assert idle_gpus.initialisations == 1
    idle_gpus.show([a_gpu(0), lost])
    until(lambda: idle_gpus.initialisations == 2, "it is initialised again")
    idle_gpus.show([a_gpu(0), a_gpu(1)])
    assert run.end()[0] == 0


# ---- At the start


def test_a_run_that_starts_while_the_driver_hangs_waits_for_it_and_says_so(
    program: Program, idle_gpus: StandIn
) -> None:
    idle_gpus.show([a_gpu(0)], hangs=INIT)
    run = Run(program, "echo $CUDA_VISIBLE_DEVICES\n")
    run.says("waiting: all GPUs: the NVIDIA driver does not answer\n")
    said = status(program)
    assert "the run is waiting for the NVIDIA driver: the NVIDIA driver does not answer; until it works" in said
    assert idle_gpus.initialisations == 1
    idle_gpus.show([a_gpu(0)])
    assert run.end() == (0, ["0"])


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "after it was said"])
def test_ctrl_c_ends_a_run_while_the_driver_hangs_at_its_start(
    program: Program, idle_gpus: StandIn, waits: bool
) -> None:
    idle_gpus.show([a_gpu(0)], hangs=INIT)
    run = Run(program, "echo started\n")
    if waits:
        run.says("waiting: all GPUs: ")
    else:
        until(lambda: "waiting for the NVIDIA driver: the NVIDIA driver does not answer" in status(program), "it waits")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == (130, [])
    run.says("stopped before the NVIDIA driver worked; no job was started\n")
    assert len(run.waits) == waits


LEASE = """
import logging
try: lease({})
except LeaseTimeout as error: print(error)
"""


def test_commands_say_that_the_driver_does_not_answer_instead_of_hanging(
    program: Program, python: Python, idle_gpus: StandIn
) -> None:
    idle_gpus.show([a_gpu(0)], hangs=INIT)
    commands = {
        "gpus": 2,
        "gpus --gpus 0": 2,
        "run -- true": 2,
        "run --gpus 0 --no-wait -- true": 2,
        "--dry-run": 2,
        "doctor": 1,
        "--gpus 0 --ignore-occupancy": 0,
    }
    leased = python.start(LEASE.format("timeout=1"))
    started = {words: program.start(*words.split(), env=UNMEASURED | os.environ) for words in commands}
    for words, code in commands.items():
        out, err = started[words].communicate(b"true\n", timeout=120)
        told = (out + err).decode()
        assert started[words].returncode == code, (words, told)
        assert code == 0 or SILENT in told or "the NVIDIA driver did not answer within 20 s" in told, (words, told)
    out, warned = leased.communicate(timeout=120)
    assert out.startswith(f"it is not known which GPUs are free: {SILENT}")
    assert "lease() waits: all GPUs: " + SILENT in warned
    done = program.run("--gpus", a_gpu(0).uuid, "--ignore-occupancy", stdin="true\n")
    assert done.returncode == 0, "which needs no NVML"


def test_gpus_that_do_not_answer_are_shown_beside_those_that_do(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([HANGS, a_gpu(1), HANGS._replace(uuid="GPU-2", bus=a_gpu(2).bus)])
    done = program.run("gpus", "--json")
    assert (done.returncode, done.stderr) == (1, b"")
    rows = json.loads(done.stdout)
    assert [row["free"] for row in rows] == [False, True, False]
    assert all(rows[index]["reason"].startswith(SILENT + "5") for index in (0, 2))
    assert rows[0]["memory_used"] is None


def test_run_and_lease_take_another_gpu_and_give_up_in_time(
    program: Program, python: Python, idle_gpus: StandIn
) -> None:
    idle_gpus.show([HANGS, a_gpu(1)])
    assert program.run("run", "--no-wait", "true").returncode == 0
    tried = program.run("run", "--no-wait", "--gpus", "0", "true")
    assert tried.returncode == 75
    assert f"no GPU is free: gpu 0: {SILENT}" in tried.stderr.decode()
    out, err = python.run(LEASE.format("timeout=0.5, gpus=0"))
    assert (out[:46], err) == ("no GPU was free within 0.5 s: gpu 0: the NVIDI", "")
    out, err = python.run(
        "with lease() as gpus: print(*gpus, threading.active_count())\nprint(threading.active_count())"
    )
    assert (out, err) == ("1 2\n2\n", ""), "only the thread whose call hangs is left"
    idle_gpus.show([a_gpu(0), a_gpu(1)])
    out, err = python.run("with lease() as gpus: print(*gpus, threading.active_count())")
    assert (out, err) == ("0 1\n", ""), "a program that forks has no thread of ours"


def test_a_look_that_takes_longer_than_a_moment_is_still_the_look_before_a_start(
    program: Program, idle_gpus: StandIn
) -> None:
    """As without persistence mode; the answer comes to a loop that has gone on."""
    idle_gpus.show([a_gpu(0), a_gpu(1)], delays={PROCESSES: 300_000})
    done = program.run(
        "--no-samples", stdin="echo $CUDA_VISIBLE_DEVICES\n" * 4 + "echo $CUDA_VISIBLE_DEVICES #: gpus=2\n"
    )
    assert (done.returncode, done.stdout.split()[-1]) == (0, b"0,1")
    assert idle_gpus.calls(PROCESSES) <= 8, "each look counts"
    assert program.run("run", "--no-wait", "true").returncode == 0
