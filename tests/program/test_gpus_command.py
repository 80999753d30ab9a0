"""`gpus`: what it shows of each GPU, to people and to programs."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, Program, has_text, until
from tests.support.nvml import GIB, GPU_IS_LOST, MIB, Process, StandIn, a_gpu, an_instance

KEYS = [
    "gpu", "uuid", "name", "memory_total", "memory_used", "utilization", "temperature", "power", "power_limit",
    "leased", "users", "free", "reason",
]  # fmt: skip
METERS = [
    "memory_copy", "energy", "clock", "memory_clock", "throttled",
    "pcie_sent", "pcie_received", "nvlink_sent", "nvlink_received",
]  # fmt: skip
NAMED = "import sys, time\nopen('/proc/self/comm', 'wb').write(bytes.fromhex(sys.argv[1]))\ntime.sleep(1000)\n"


@pytest.fixture
def user() -> Iterator[Callable[[bytes], int]]:
    """Starts a process of that name, and ends it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: bytes) -> int:
        started.append(subprocess.Popen([sys.executable, "-c", NAMED, name.hex()]))
        comm = Path(f"/proc/{started[-1].pid}/comm")
        until(lambda: comm.read_bytes() == name + b"\n", "it has its name")
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


def table(program: Program, *args: str) -> list[str]:
    done = program.run("gpus", *args)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def as_json(program: Program, *args: str) -> list[dict[str, object]]:
    done = program.run("gpus", "--json", *args)
    assert (done.returncode, done.stderr) == (0, b"")
    rows = json.loads(done.stdout)
    assert all(list(row) == [*KEYS, *METERS] for row in rows)
    return rows


def test_the_table_shows_each_gpu_with_its_lease_its_users_and_why_it_is_not_free(
    program: Program, idle_gpus: StandIn, user: Callable[[bytes], int]
) -> None:
    pids = [user(b"trainer"), user(b"jupyter")]
    processes = [Process(pids[0], 11 * GIB), Process(pids[1], 300 * MIB)]
    idle_gpus.show(
        [
            a_gpu(0),
            a_gpu(1, used=12 * GIB, utilization=93, temperature=66, power=312_400, processes=processes),
            a_gpu(2, used=5 * GIB, utilization=None, temperature=None, power_limit=None),
            a_gpu(3, power=None, errors={"nvmlDeviceGetComputeRunningProcesses_v2": GPU_IS_LOST}),
        ]
    )
    # A command that begins with a keyword of the shell: no word of it says what it is.
    program.feed(program.start("--gpus", "0", "-q"), "for i in 1; do echo $$ > pid; exec sleep 1000; done\n")
    until(has_text(program.directory / "pid"), "the job runs")
    pid = int((program.directory / "pid").read_text())
    until(lambda: f"leased by root (pid {pid}, job 1 of run " in "".join(table(program)), "the lease names the job")
    rows = [re.split(r"\s{2,}", row.strip()) for row in table(program)]
    name = "NVIDIA A100-SXM4-80GB"
    assert rows[0] == ["GPU", "NAME", "MEMORY", "UTIL", "TEMP", "POWER", "STATE", "USED BY"]
    assert rows[1][:3] == ["0", name, "0.0 / 80.0 GiB"]
    assert rows[1][3:6] + rows[1][7:] == ["0 %", "30 °C", "60 / 400 W", "-"]
    assert re.fullmatch(rf"leased by root \(pid {pid}, job 1 of run [0-9a-f]{{6}}\) for [\d.]+ s", rows[1][6])
    assert rows[2][:7] == ["1", name, "12.0 / 80.0 GiB", "93 %", "66 °C", "312 / 400 W", "in use"]
    assert re.fullmatch(r"root trainer 11\.0 GiB for \S+ s, root jupyter 300 MiB for \S+ s", rows[2][7])
    assert rows[3][2:] == ["5.0 / 80.0 GiB", "-", "-", "60 W", "5.0 GiB used by others", "-"]
    assert rows[4][6] == "fallen off the bus; a reboot may bring it back"


def test_json_has_all_of_it_and_null_for_what_is_unknown(
    program: Program, idle_gpus: StandIn, user: Callable[[bytes], int]
) -> None:
    pid = user(b"trainer")
    nothing = dict.fromkeys(("utilization", "temperature", "power", "power_limit"))
    idle_gpus.show([a_gpu(0), a_gpu(1, total=None, **nothing), a_gpu(2, used=GIB, processes=[Process(pid, None)])])
    idle, dark, used = as_json(program)
    assert list(idle.values()) == [
        *("0", a_gpu(0).uuid, "NVIDIA A100-SXM4-80GB", 80 * GIB, 0, 0, 30, 60.0, 400.0),
        *(None, [], True, None),
        *(0, *[None] * (len(METERS) - 1)),
    ]
    assert list(dark.values())[3:] == [None] * 7 + [[], True, None] + [None] * len(METERS)
    (who,) = used.pop("users")  # type: ignore[misc]
    assert (list(who), who["pid"], who["memory"]) == (["pid", "user", "program", "memory", "seconds"], pid, None)
    assert (who["user"], who["program"], used["free"]) == ("root", "trainer", False)
    assert str(used["reason"]).startswith("root trainer for ")
    assert idle_gpus.initialisations == 1


def test_json_has_what_the_meters_of_a_gpu_show(program: Program, idle_gpus: StandIn) -> None:
    shown = {"energy": 5_000, "clock": 1400, "memory_clock": 1215, "throttle": 0x24, "pcie_tx_bytes": 7}
    idle_gpus.show([a_gpu(0, memory_utilization=20, **shown)])
    [row] = as_json(program)
    assert [row[name] for name in METERS] == [20, 5.0, 1400, 1215, ["heat", "power"], 7, None, None, None]


@pytest.mark.parametrize(
    ("args", "free"),
    [
        ([], [True, False, False]),
        (["--max-used-memory", "3G"], [True, True, True]),
        (["--free-memory", "79.5G", "--max-used-memory", "3G"], [True, False, False]),
        (["--gpus", "1"], [False]),
        (["--gpus", "1", "--ignore-occupancy"], [True]),
        (["--ignore-occupancy"], [True, True, True]),
    ],
)
def test_free_means_that_a_run_with_the_same_options_would_use_it(
    program: Program, idle_gpus: StandIn, args: list[str], free: list[bool]
) -> None:
    idle_gpus.show([a_gpu(0), a_gpu(1, used=GIB), a_gpu(2, used=2 * GIB)])
    assert [row["free"] for row in as_json(program, *args)] == free
    started = program.run("run", "--no-wait", *args, "-n", str(len(free)), "true").returncode
    assert (started == 0) == all(free)


def test_mig_instances_are_shown_by_their_uuids(program: Program, idle_gpus: StandIn) -> None:
    instances = [an_instance(0, 0), an_instance(0, 1, used=GIB)]
    idle_gpus.show([a_gpu(0, mig=True, instances=instances), a_gpu(1)])
    rows = as_json(program)
    assert [(row["uuid"], row["free"], row["utilization"]) for row in rows] == [
        (instances[0].uuid, True, None),
        (instances[1].uuid, False, None),
        (a_gpu(1).uuid, True, 0),
    ]
    assert rows[1]["name"] == instances[1].name


def test_a_lost_gpu_is_named_and_the_others_are_shown(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0), a_gpu(1, errors={"*": GPU_IS_LOST})])
    first, lost = as_json(program)
    assert (first["free"], lost["free"], lost["memory_total"], lost["temperature"]) == (True, False, None, None)
    assert "fallen off the bus" in str(lost["reason"])


def test_without_nvml_it_shows_leases_of_what_is_named_and_says_what_it_cannot(program: Program) -> None:
    done = program.run("gpus")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"so GPUs cannot be found; say which to use, for example: " in done.stderr
    program.feed(program.start("--gpus", "0", "-q"), "echo $$ > pid; exec sleep 1000\n")
    until(has_text(program.directory / "pid"), "the job runs")
    done = program.run("gpus", "--json", "--gpus", "0", "1")
    assert done.stderr.count(b"use of the GPUs by others is not checked\n") == 1
    leased, free = json.loads(done.stdout)
    assert (leased["free"], leased["leased"].split()[:3]) == (False, ["leased", "by", "root"])
    assert (free["free"], free["memory_total"], free["uuid"]) == (True, None, None)


# A comm holds 15 bytes.
HOSTILE = [
    b"\x1b[2J\x1b[31mred",
    b"[red]x[/red]",
    b"[/]",
    b"a\nb\rc",
    b"\xe2\x80\xaetxt",
    b"\x9b31m\xff",
    b"\x07\x08|;$(x)",
]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_a_hostile_name_of_a_process_is_shown_safely(
    program: Program, idle_gpus: StandIn, user: Callable[[bytes], int], name: bytes
) -> None:
    idle_gpus.show([a_gpu(0, processes=[Process(user(name), GIB)])])
    rows = table(program)
    assert len(rows) == 2
    shown = rows[1].partition("root ")[2]
    assert shown.isprintable()
    assert shown.startswith("[red]x[/red] 1.0 GiB for") or name != HOSTILE[1]
    ((who,),) = [row["users"] for row in as_json(program)]  # type: ignore[misc]
    assert who["program"] == name.decode("utf-8", "replace").strip()
    said = program.run("run", "--no-wait", "true").stderr.decode()
    assert said.strip().isprintable()


# ---- Watching


def test_watching_through_a_pipe_gives_a_line_each_time_until_ctrl_c(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    process = program.start("gpus", "--watch", "--json")
    assert process.stdout
    assert [row["free"] for row in json.loads(process.stdout.readline())] == [True]
    idle_gpus.show([a_gpu(0, used=GIB)])
    assert [row["free"] for row in json.loads(process.stdout.readline())] == [False]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, b"")
    assert idle_gpus.initialisations == 1


def test_watching_on_a_terminal_shows_changes_in_place_until_ctrl_c(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200", "LINES": "40"}
    process = program.start("gpus", "--watch", stdin=theirs, stdout=theirs, env=environment, start_new_session=True)
    os.close(theirs)
    seen = b""

    def sees(text: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 30
        while text not in seen:
            assert time.monotonic() < end, seen
            if select.select([ours], [], [], 0.1)[0]:
                seen += os.read(ours, 65536)

    sees(b"\x1b[32m0")  # green: it is free
    sees(b"free")
    idle_gpus.show([a_gpu(0, used=GIB)])
    sees(b"\x1b[33m0")
    sees(b"1.0 GiB used by others")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    os.close(ours)


def test_a_table_whose_reader_has_gone_ends_quietly(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    command = " ".join([*SCHEDULER, "gpus", "--watch", "--json"])
    done = subprocess.run(
        ["sh", "-c", f"{command} | head -1"], capture_output=True, check=True, cwd=program.directory, timeout=120
    )
    assert (done.stdout.count(b"\n"), done.stderr) == (1, b"")
