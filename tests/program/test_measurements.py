"""What jobs did to their GPUs and the CPU: recorded by the real program, from meters that move."""

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.samples import read_curves
from tests.conftest import Program, until
from tests.support.nvml import GIB, GPU_IS_LOST, UNKNOWN, Process, Ramp, StandIn, Steps, a_gpu

WATTS = 250
METERS = ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature")
# It says who it is, and runs until it is told to end.
HOLDS = "echo $$ > pid$SGS_JOB; until [ -e go$SGS_JOB ]; do sleep 0.01; done"
# Two children in turn that each use 0.4 s of CPU time and 50 MiB, of whom nothing is left at the end.
BURNS = (
    f"for i in 1 2; do {sys.executable} -c 'import time; a = bytearray(50 << 20); "
    "[0 for _ in iter(lambda: time.process_time() < 0.4, False)]'; done; sleep 0.5"
)


def records(event: str = "attempt measured") -> list[dict[str, Any]]:
    [journal] = journals()
    found = [json.loads(line) for line in journal.read_text().splitlines()]
    return [record for record in found if record["event"] == event]


def journals() -> list[Path]:
    return [*Path(files.runs_directory(os.environ)).glob("*.jsonl")]


def samples() -> list[Path]:
    return [*Path(files.runs_directory(os.environ)).glob("*.samples")]


def busy(index: int = 0, **changes: object) -> object:
    since = time.time()
    values: dict[str, object] = {
        "utilization": 80,
        "memory_utilization": 30,
        "power": WATTS * 1000,
        "energy": Ramp(5_000_000, WATTS * 1000, since),
        "clock": 1400,
        "throttle": 0x20 | 0x1,
        "pcie_tx_bytes": Ramp(0, 1000, since),
        "pcie_rx_bytes": Ramp(0, 2000, since),
        "xids": {},
    }
    return a_gpu(index, **(values | changes))


def test_each_attempt_is_charged_what_its_gpu_counted_to_the_joule(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy()])
    assert program.run("--gpus", "0", stdin="sleep 1.3\nsleep 2.1\n").returncode == 0
    ends = {record["job"]: record for record in records("job ended")}
    for record in records():
        [use] = record["gpus"]
        runtime = ends[record["job"]]["runtime"]
        assert abs(use["energy"] - WATTS * runtime) < WATTS * 0.1, "a tenth of a second"
        assert use["traffic"]["pcie_received"] == pytest.approx(2 * use["traffic"]["pcie_sent"], rel=0.01)
        assert use["utilization"] == {"mean": 80.0, "max": 80, "p95": 80.0}
        assert use["throttled"] == {"heat": pytest.approx(use["seconds"])}
        assert use["clock"] == {"mean": 1400.0, "max": 1400}
        assert "by_power" not in use
        assert "shared" not in use


def test_what_a_gpu_does_not_tell_is_absent_and_energy_comes_from_power(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0, power=WATTS * 1000, utilization=None, temperature=None)])
    assert program.run("--gpus", "0", stdin="sleep 2.2\n").returncode == 0
    [record] = records()
    [use] = record["gpus"]
    assert use["by_power"] is True
    assert abs(use["energy"] - WATTS * 2.2) < WATTS * 0.2
    assert use.keys().isdisjoint({"utilization", "idle", "temperature", "clock", "throttled", "traffic", "xids"})


def shown_for(seconds: float, since: float) -> bool:
    return time.time() > since + seconds


def test_time_at_zero_shows_in_the_figures_and_the_curve(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy(utilization=0)])
    process = program.start("--gpus", "0")
    program.feed(process, f"{HOLDS}\n")
    until((program.directory / "pid1").exists, "it runs")
    began = time.time()
    idle_gpus.show([busy(utilization=Steps(began, ((0, 2.5), (90, None))))])
    until(partial(shown_for, 5, began), "it was busy for some seconds")
    (program.directory / "go1").touch()
    assert process.wait(60) == 0
    [record] = records()
    [use] = record["gpus"]
    assert 1.4 < use["idle"] < 3.7
    assert use["utilization"]["max"] == 90
    [curve] = [each for each in read_curves(str(journals()[0]))[1, 1] if each.gpu == "0"]
    shown = [point.means[0] for point in curve.points]
    assert shown[0] == 0
    assert shown[-1] == 90
    assert abs(curve.points[0].at - began) < 1.5


def test_memory_and_shares_are_those_of_the_own_processes(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy()])
    process = program.start("--gpus", "0", "--jobs-per-gpu", "2")
    program.feed(process, f"{HOLDS}\n" * 2)
    until(lambda: all((program.directory / f"pid{job}").exists() for job in (1, 2)), "they run")
    pids = [int((program.directory / f"pid{job}").read_text()) for job in (1, 2)]
    users = [Process(pids[0], 3 * GIB, sm=50), Process(pids[1], GIB, sm=20)]
    idle_gpus.show([busy(processes=users, used=5 * GIB, utilization=70)])
    seen = idle_gpus.calls(METERS[0])
    until(lambda: idle_gpus.calls(METERS[0]) >= seen + 4, "more samples were taken")
    for job in (1, 2):
        (program.directory / f"go{job}").touch()
    assert process.wait(60) == 0
    one, other = (record["gpus"][0] for record in sorted(records(), key=lambda record: record["job"]))
    assert (one["memory"]["max"], other["memory"]["max"]) == (3 * GIB, GIB)
    assert (one["utilization"]["max"], other["utilization"]["max"]) == (50, 20)
    assert one["device_memory"]["max"] == 5 * GIB
    assert {"energy", "power", "temperature"} < set(one["of_gpu"])
    assert {"memory", "utilization"}.isdisjoint(one["of_gpu"])
    assert one["shared"] > 1


def test_an_xid_error_is_counted(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy()])
    process = program.start("--gpus", "0")
    program.feed(process, f"{HOLDS}\n")
    until(lambda: idle_gpus.calls("nvmlDeviceRegisterEvents"), "it listens")
    idle_gpus.show([busy(xids={31: 2})])
    seen = idle_gpus.calls(METERS[0])
    until(lambda: idle_gpus.calls(METERS[0]) >= seen + 3, "more samples were taken")
    (program.directory / "go1").touch()
    assert process.wait(60) == 0
    assert records()[0]["gpus"][0]["xids"] == {"31": 2}


def test_the_error_of_a_gpu_that_falls_off_the_bus_is_counted_although_it_tells_nothing_else(
    program: Program, idle_gpus: StandIn
) -> None:
    idle_gpus.show([busy(), a_gpu(1)])
    process = program.start("--gpus", "0")
    program.feed(process, f"{HOLDS}\n")
    until(lambda: idle_gpus.calls("nvmlDeviceRegisterEvents"), "it listens")
    idle_gpus.show([busy(xids={79: 1}, errors={"*": GPU_IS_LOST}), a_gpu(1)])
    seen = idle_gpus.calls("nvmlEventSetWait_v2")
    until(lambda: idle_gpus.calls("nvmlEventSetWait_v2") >= seen + 3, "it was asked for errors again")
    (program.directory / "go1").touch()
    assert process.wait(60) == 0
    assert records()[0]["gpus"][0]["xids"] == {"79": 1}


def test_children_that_come_and_go_are_counted_with_their_parent(program: Program) -> None:
    assert program.run("--gpus", "0", stdin=f"{BURNS}\n").returncode == 0
    [record] = records()
    assert record["cpu"]["seconds"] >= 0.8
    assert record["cpu"]["peak_memory"] > 50 * 2**20
    assert "gpus" not in record, "there is no NVML"


def test_a_call_that_hangs_costs_only_the_figures_of_its_gpu(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy(0), busy(1)])
    process = program.start("--gpus", "0", "1")
    program.feed(process, f"{HOLDS}\n" * 2)
    until(lambda: all((program.directory / f"pid{job}").exists() for job in (1, 2)), "they run")
    idle_gpus.show([busy(0, hangs=[METERS[0]]), busy(1)])
    seen = idle_gpus.calls(METERS[1])
    until(lambda: idle_gpus.calls(METERS[1]) >= seen + 8, "the other one is sampled again")
    status = json.loads(program.run("status", "--json").stdout)
    assert len(status[0]["running"]) == 2
    for job in (1, 2):
        (program.directory / f"go{job}").touch()
    assert process.wait(60) == 0
    by_job = {record["job"]: record["gpus"][0] for record in records() if "gpus" in record}
    assert by_job[2]["seconds"] > 5
    assert 1 not in by_job or by_job[1]["seconds"] < 5


@pytest.mark.parametrize("gpus", [1, 2])
def test_a_first_sample_that_hangs_holds_up_neither_the_next_job_nor_the_end(
    program: Program, idle_gpus: StandIn, gpus: int
) -> None:
    idle_gpus.show([busy(index, hangs=[METERS[0]]) for index in range(gpus)])
    numbers = [str(index) for index in range(gpus)]
    done = program.run("--gpus", *numbers, stdin="echo $SGS_JOB\n" * 6, timeout=60)
    assert (done.returncode, len(done.stdout.split())) == (0, 6)


def test_a_last_sample_that_hangs_does_not_hold_up_the_end(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy()])
    process = program.start("--gpus", "0")
    program.feed(process, f"{HOLDS}\n")
    until(lambda: idle_gpus.calls(METERS[0]) >= 3, "it was sampled")
    idle_gpus.show([busy(hangs=[METERS[0]])])
    (program.directory / "go1").touch()
    assert process.wait(60) == 0


def test_a_meter_in_trouble_costs_only_its_own_figure(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy(errors={METERS[1]: UNKNOWN})])
    assert program.run("--gpus", "0", stdin="sleep 2.2\n").returncode == 0
    [use] = records()[0]["gpus"]
    assert "temperature" not in use
    assert (use["utilization"]["max"], use["power"]["max"]) == (80, WATTS)


def test_a_gpu_is_never_more_than_wholly_busy(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy(utilization=150)])
    assert program.run("--gpus", "0", stdin="sleep 2.2\n").returncode == 0
    assert records()[0]["gpus"][0]["utilization"]["max"] == 100


def test_the_status_tells_what_a_job_does_now(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy()])
    process = program.start("--gpus", "0")
    program.feed(process, f"{HOLDS}\n")

    def use() -> dict[str, Any]:
        status = json.loads(program.run("status", "--json").stdout)
        measured = status[0]["running"][0].get("measured", {}) if status and status[0]["running"] else {}
        return measured.get("gpus", [{}])[0]

    until(lambda: "now" in use(), "there is a reading")
    now = use()["now"]
    assert (now["utilization"], now["memory_copy"], now["power"]) == (80, 30, WATTS)
    (program.directory / "go1").touch()
    assert process.wait(60) == 0


def test_nothing_is_asked_of_the_meters_while_nothing_runs(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy()])
    os.mkfifo(program.directory / "queue")
    process = program.start("--gpus", "0", "queue")
    with (program.directory / "queue").open("w") as queue:
        queue.write("sleep 1.5\n")
        queue.flush()
        until(lambda: journals() and records("job ended"), "it has ended")
        until(partial(_rests, idle_gpus), "no sample for three seconds")
        process.terminate()
        process.wait(60)


def _rests(nvml: StandIn) -> bool:
    seen, end = nvml.calls(METERS[0]), time.monotonic() + 3
    while time.monotonic() < end:
        time.sleep(0.1)
        if nvml.calls(METERS[0]) != seen:
            return False
    return True


class TestWithoutSamples:
    @pytest.mark.parametrize("way", ["--no-samples", "SGS_NO_SAMPLES"])
    def test_nothing_is_measured_if_that_is_wanted(
        self, program: Program, idle_gpus: StandIn, way: str, monkeypatch
    ) -> None:
        idle_gpus.show([busy()])
        monkeypatch.setenv("SGS_NO_SAMPLES", "" if way.startswith("-") else "1")
        args = [way] if way.startswith("-") else []
        assert program.run("--gpus", "0", *args, stdin="sleep 1.5\n").returncode == 0
        assert (records(), samples()) == ([], [])
        assert idle_gpus.calls(METERS[0]) == 0

    def test_a_job_that_ends_at_once_leaves_no_record(self, program: Program, idle_gpus: StandIn) -> None:
        idle_gpus.show([busy()])
        assert program.run("--gpus", "0", stdin="true\n" * 50).returncode == 0
        assert (records(), samples()) == ([], [])


def test_samples_go_with_their_run(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([busy()])
    assert program.run("--gpus", "0", stdin="sleep 1.5\n").returncode == 0
    [path] = samples()
    assert path.stat().st_mode & 0o777 == 0o600
    assert program.run("clean", "--all").returncode == 0
    assert (samples(), journals()) == ([], [])
