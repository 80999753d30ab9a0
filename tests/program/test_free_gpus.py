"""When a GPU is free, what it says while one is not, and what waiting costs."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, UNMEASURED, Program, has_text, until
from tests.support.nvml import GIB, MIB, UNKNOWN, Process, StandIn, a_gpu, an_instance
from tests.support.sharing import UID, as_user, mount_namespace, needs_users

DEAD_PID = 2**22 - 1  # above every pid that Linux gives on a machine of usual size
MINE = " (yours; to share the GPU: --share-with me)"
HOLDS = "until [ -e go ]; do sleep 0.01; done\n"
needs_root = pytest.mark.skipif(
    os.getuid() != 0 or not shutil.which("setpriv"), reason="only root can start processes of another user, by setpriv"
)


@pytest.fixture
def sleeper() -> Iterator[Callable[..., int]]:
    """Starts a process that sleeps, also as another user, and ends it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*prefix: str) -> int:
        started.append(subprocess.Popen([*prefix, "sleep", "1000"]))
        comm = Path(f"/proc/{started[-1].pid}/comm")
        until(lambda: comm.read_text() == "sleep\n", "it sleeps")
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


NOBODY = ("setpriv", "--reuid=nobody", "--clear-groups", "--")


class Run:
    """A run whose words can be read while it waits."""

    def __init__(self, program: Program, jobs: str, *args: str, **settings) -> None:
        self.words = program.directory / "words"
        with self.words.open("wb") as words:
            self.process = program.start(*args, stderr=words, **settings)
        program.feed(self.process, jobs)

    def says(self, text: str) -> None:
        until(has_text(self.words, text), f"it says: {text}")

    def end(self) -> tuple[int, list[str]]:
        """Its exit code, and what its jobs printed."""
        out, _ = self.process.communicate(timeout=120)
        return self.process.returncode, out.decode().split()

    @property
    def waits(self) -> list[str]:
        return [line for line in self.words.read_text().splitlines() if line.startswith("waiting: ")]


def attempt(program: Program, *args: str) -> str:
    """Why no GPU is free to start on now; nothing if one is."""
    done = program.run("run", "--no-wait", *args, "true")
    words = done.stderr.decode()
    assert done.returncode == (75 if "no GPU is free: " in words else 0), words
    return words.partition("no GPU is free: ")[2].strip()


# ---- Free, or not


@pytest.mark.parametrize(
    ("gpu", "args", "why"),
    [
        ({}, [], ""),
        ({"used": 256 * MIB}, [], ""),
        ({"used": 256 * MIB + MIB}, [], "257 MiB used by others"),
        ({"reserved": 700 * MIB}, [], ""),
        ({"used": GIB}, ["--max-used-memory", "1G"], ""),
        ({"used": GIB + MIB}, ["--max-used-memory", "1G"], "1.0 GiB used by others"),
        ({"used": MIB}, ["--max-used-memory", "0"], "1 MiB used by others"),
        ({"used": 10 * GIB}, ["--max-used-memory", "20G", "--free-memory", "70G"], ""),
        (
            {"used": 11 * GIB},
            ["--max-used-memory", "20G", "--free-memory", "70G"],
            "69.0 GiB free, less than the required 70.0 GiB",
        ),
        ({"utilization": 99}, [], ""),
        ({"utilization": 10}, ["--max-utilization", "10"], ""),
        ({"utilization": 11}, ["--max-utilization", "10"], "11 % busy, more than the"),
        ({"used": 70 * GIB, "utilization": 99}, ["--ignore-occupancy"], ""),
        ({"total": None}, [], ""),
    ],
)
@pytest.mark.parametrize("names", [[], ["--gpus", "0"]], ids=["found", "named"])
def test_memory_and_utilisation_decide_by_their_thresholds(
    program: Program, idle_gpus: StandIn, gpu: dict[str, int], args: list[str], why: str, names: list[str]
) -> None:
    idle_gpus.show([a_gpu(0, **gpu)])
    said = attempt(program, *names, *args)
    assert said.startswith(f"gpu 0: {why}" if why else "")
    assert "--" not in said  # nothing that would teach a newcomer to trample
    assert bool(said) == bool(why)


@needs_root
def test_whose_processes_count_is_for_the_user_to_say(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int]
) -> None:
    mine, theirs = sleeper(), sleeper(*NOBODY)
    idle_gpus.show([a_gpu(0, used=11 * GIB, processes=[Process(mine, 11 * GIB)])])
    assert re.fullmatch(rf"gpu 0: root sleep 11\.0 GiB for \S+ s{re.escape(MINE)}", attempt(program))
    assert attempt(program, "--share-with", "me") == attempt(program, "--share-with", "root") == ""
    assert attempt(program, "--share-with", "nobody").startswith("gpu 0: root sleep")
    assert attempt(program, "--ignore-occupancy") == ""
    idle_gpus.show([a_gpu(0, used=GIB, processes=[Process(theirs, None)])])
    said = attempt(program, "--share-with", "me", "--max-used-memory", "9G")
    assert re.fullmatch(r"gpu 0: nobody sleep for \S+ s", said)  # whom only they may disturb
    idle_gpus.show([a_gpu(0, used=2 * GIB, processes=[Process(mine, GIB), Process(theirs, GIB)])])
    assert attempt(program, "--share-with", "me").startswith("gpu 0: nobody sleep 1.0 GiB for ")
    assert attempt(program, "--share-with", "me", "--share-with", "nobody") == ""
    idle_gpus.show([a_gpu(0, used=3 * GIB, processes=[Process(mine, GIB)])])
    assert attempt(program, "--share-with", "me").startswith("gpu 0: 2.0 GiB used by others")


def test_an_unknown_user_to_share_with_is_an_error(program: Program, idle_gpus: StandIn) -> None:
    done = program.run("--share-with", "no_such_user", stdin="echo x")
    assert (done.returncode, done.stdout, idle_gpus.initialisations) == (2, b"", 0)
    assert b"there is no user 'no_such_user'; use a user name or me" in done.stderr


def test_a_mig_instance_is_looked_at_for_itself(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int]
) -> None:
    busy = an_instance(0, 0, used=GIB, processes=[Process(sleeper(), GIB)])
    idle_gpus.show([a_gpu(0, mig=True, instances=[busy, an_instance(0, 1)])])
    done = program.run(stdin="echo $CUDA_VISIBLE_DEVICES\n" * 3)
    assert done.stdout.decode().split() == [an_instance(0, 1).uuid] * 3


LISTS = "nvmlDeviceGetComputeRunningProcesses_v2"


@pytest.mark.parametrize("command", [["--free-for", "5s"], ["run", "--free-for", "5s", "touch", "began"]])
def test_a_gap_in_somebodys_loop_is_not_taken(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int], command: list[str]
) -> None:
    """Each gap lasts until the program has seen it twice: at a look of its own, and right before a start."""
    used, free = a_gpu(0, processes=[Process(sleeper(), GIB)]), a_gpu(0)
    idle_gpus.show([used])
    run = Run(program, "touch began\n" if command[0] != "run" else "", *command)
    run.says("waiting: gpu 0: root sleep 1.0 GiB for ")
    for look in [free, used, free]:
        looks = idle_gpus.calls(LISTS)
        idle_gpus.show([look])
        until(lambda before=looks: idle_gpus.calls(LISTS) >= before + 2, "it has looked")
        assert not (program.directory / "began").exists()
    run.says("free for less than 5.0 s after root sleep\n")
    assert run.end() == (0, [])
    assert run.waits[-1] == "waiting: gpu 0: free for less than 5.0 s after root sleep"
    assert (program.directory / "began").exists()


@needs_root
@pytest.mark.parametrize(
    ("prefix", "args"), [((), []), (NOBODY, ["--gpus", "0"])], ids=["of oneself", "of another user"]
)
def test_a_gpu_with_a_process_on_it_is_used_as_soon_as_that_is_gone(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int], prefix: Sequence[str], args: list[str]
) -> None:
    idle_gpus.show([a_gpu(0, processes=[Process(sleeper(*prefix), 0)])])
    run = Run(program, "touch began\necho cpu #: gpus=0\n", "--free-for", "0", *args)
    run.says(f"waiting: gpu 0: {'nobody' if prefix else 'root'} sleep 0 MiB for ")
    assert not (program.directory / "began").exists()
    idle_gpus.show([a_gpu(0)])
    assert run.end() == (0, ["cpu"])
    assert len(run.waits) == 1


def test_gpus_are_looked_at_again_right_before_each_start(program: Program, idle_gpus: StandIn) -> None:
    """Whatever changes between two starts, the second is on a GPU that is unused by then."""
    places = [0, 1, 1, 2, 0, 2, 2, 1, 0, 1, 2, 0]

    def only(free: int) -> None:
        idle_gpus.show([a_gpu(gpu, used=0 if gpu == free else GIB) for gpu in range(3)])

    only(places[0])
    job = "echo $CUDA_VISIBLE_DEVICES; touch on$SGS_JOB; until [ -e go$SGS_JOB ]; do sleep 0.01; done\n"
    run = Run(program, job * len(places))
    for number, following in enumerate([*places[1:], 0], 1):
        until((program.directory / f"on{number}").exists, f"job {number} runs")
        only(following)
        (program.directory / f"go{number}").touch()
    assert run.end() == (0, [str(place) for place in places])


JOBS = {
    "itself": "echo $$ > pid; ",
    "a child": "sleep 1000 & echo $! > pid; ",
    "one that hides": "env -i setsid sleep 1000 & echo $! > pid; ",
    "an orphan that hides": "(env -i setsid sh -c 'echo $$ > pid; exec sleep 1000' &); ",
}


@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("args", [[], ["--share-with", "me"], ["--gpus", "0"]], ids=["", "shared", "named"])
def test_a_process_of_our_own_jobs_does_not_block_the_next_job(
    program: Program, idle_gpus: StandIn, kind: str, args: list[str]
) -> None:
    idle_gpus.show([a_gpu(0)])
    first = f"{JOBS[kind]}until [ -e third ]; do sleep 0.01; done; echo first\n"
    run = Run(program, f"{first}{HOLDS}echo third; touch third\n", "--jobs-per-gpu", "2", *args)
    pid = program.directory / "pid"
    until(has_text(pid), "the first job has told its process")
    idle_gpus.show([a_gpu(0, used=30 * GIB, processes=[Process(int(pid.read_text()), 30 * GIB)])])
    (program.directory / "go").touch()
    assert run.end() == (0, ["third", "first"])
    assert run.waits == []


def test_a_scheduler_in_a_job_may_use_the_gpu_of_that_job(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0)])
    inner = f"echo $$ > pid; until [ -e go ]; do sleep 0.01; done; echo echo inner | {' '.join(SCHEDULER)} --gpus 0 -q"
    run = Run(program, f"{inner}\n")
    until(has_text(program.directory / "pid"), "the job has told its process")
    outer = int((program.directory / "pid").read_text())
    idle_gpus.show([a_gpu(0, used=GIB, processes=[Process(outer, GIB)])])
    (program.directory / "go").touch()
    assert run.end() == (0, ["inner"])


@needs_root
@pytest.mark.parametrize("args", [[], ["--share-with", "nobody"]])
def test_a_neighbour_who_comes_to_a_gpu_of_ours_is_reported_once(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int], args: list[str]
) -> None:
    theirs, more = sleeper(*NOBODY), sleeper(*NOBODY)
    idle_gpus.show([a_gpu(0), a_gpu(1)])
    run = Run(program, f"echo $$ > pid; {HOLDS}", *args)
    until(has_text(program.directory / "pid"), "the job has told its process")
    ours = int((program.directory / "pid").read_text())
    for pids in [theirs, ours], [theirs, ours, more]:
        looks = idle_gpus.calls(LISTS)
        idle_gpus.show([a_gpu(0, processes=[Process(pid, GIB) for pid in pids]), a_gpu(1)])
        until(lambda before=looks: idle_gpus.calls(LISTS) >= before + 1, "it looks who else is there")
    line = "gpu 0: nobody sleep started on it alongside job 1\n"
    if not args:
        run.says(line)
    (program.directory / "go").touch()
    assert run.end() == (0, [])
    assert run.words.read_text().count(" started on it alongside ") == (not args)
    (journal,) = program.directory.glob("state/simple_gpu_scheduler/runs/*.jsonl")
    came = [row for row in map(json.loads, journal.read_text().splitlines()) if row["event"] == "neighbour came"]
    assert [(row["gpu"], row["who"], row["beside"]) for row in came] == [("0", "nobody sleep", [1])] * (not args)


# ---- Pids that are none here


def test_processes_that_cannot_be_seen_let_memory_decide_and_that_is_reported_once(
    program: Program, idle_gpus: StandIn
) -> None:
    processes = [Process(DEAD_PID, GIB)]
    idle_gpus.show([a_gpu(0, used=100 * MIB, processes=processes), a_gpu(1, used=GIB, processes=processes)])
    done = program.run(stdin="echo $CUDA_VISIBLE_DEVICES\n" * 10)
    assert (done.returncode, set(done.stdout.split())) == (0, {b"0"})
    assert (
        done.stderr.count(b"NVML reports processes that are not visible from here, as in a container, so a GPU's") == 1
    )
    assert attempt(program, "--gpus", "1").startswith("gpu 1: 1.0 GiB used by processes that are not visible from here")


@needs_root
def test_in_a_pid_namespace_memory_decides_and_that_is_reported_once(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int]
) -> None:
    processes = [Process(sleeper(), GIB)]
    idle_gpus.show([a_gpu(0, used=MIB, processes=processes), a_gpu(1, used=GIB, processes=processes)])
    unshared = ["unshare", "--pid", "--fork", "--mount-proc", *SCHEDULER]
    done = subprocess.run(
        unshared,
        input=b"echo $CUDA_VISIBLE_DEVICES\n" * 10,
        capture_output=True,
        check=False,
        cwd=program.directory,
        timeout=120,
    )
    if b"unshare failed" in done.stderr or b"cannot" in done.stderr.partition(b"NVML")[0]:
        pytest.skip("this machine forbids a namespace of pids")
    assert (done.returncode, done.stdout.split()) == (0, [b"0"] * 10)
    assert done.stderr.count(b"NVML reports processes that are not visible from here, as in a container") == 1


@needs_root
@pytest.mark.open_to_others
@pytest.mark.parametrize(("hidden", "who"), [(2, "another user (pid {pid}) 100 MiB"), (1, "root (pid {pid}) 100 MiB")])
def test_a_process_that_proc_hides_counts_however_little_memory_it_uses(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int], hidden: int, who: str
) -> None:
    needs_users()
    pid = sleeper()
    idle_gpus.show([a_gpu(0, used=100 * MIB, processes=[Process(pid, 100 * MIB)])])
    as_other = f"{' '.join(as_user(UID))} $SGS"
    words = mount_namespace(
        # A mount of its own, since a remount would hide the processes of this whole machine.
        f"mount -t proc -o hidepid={hidden} proc /proc && {as_other} run --no-wait true; echo $?; "
        f"{as_other} run --no-wait --share-with root true; echo $?; {as_other} gpus --json",
        program.directory,
        UNMEASURED | idle_gpus.environment | {"SGS_LEASE_DIR": str(open_leases(program.directory))},
    )
    refusal = f"no GPU is free: gpu 0: {who.format(pid=pid)}"
    lines, _, rows = words.partition("[\n")
    # With hidepid=2 nobody can tell that it is root's.
    assert lines.splitlines() == [refusal, "75", *([refusal, "75"] if hidden > 1 else ["0"])]
    ((row,),) = [each["users"] for each in json.loads(f"[{rows}")]
    unknown = ["user", "program", "seconds"] if hidden > 1 else ["program", "seconds"]
    assert [name for name, value in row.items() if value is None] == unknown


def open_leases(directory: Path) -> Path:
    """A directory for the leases of all users."""
    leases = directory / "leases"
    leases.mkdir(exist_ok=True)
    leases.chmod(0o1777)
    return leases


# ---- Saying why, and what it costs


def leased(program: Program, gpu: str) -> int:
    """Another scheduler runs a train.py on this GPU; the pid of that."""
    script = program.directory / "train.py"
    script.write_text("import os, time\nopen('leased', 'w').write(f'{os.getpid()}\\n')\ntime.sleep(1000)\n")
    program.feed(program.start("--gpus", gpu, "-q"), f"exec {sys.executable} train.py #: name=wide\n")
    until(has_text(program.directory / "leased"), "the other scheduler's job runs")
    return int((program.directory / "leased").read_text())


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_one_line_says_why_once_per_change_and_it_looks_seldom(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int]
) -> None:
    used = a_gpu(1, used=11 * GIB, processes=[Process(sleeper(), 11 * GIB)])
    idle_gpus.show([a_gpu(0), used, a_gpu(2)])
    pid = leased(program, "2")
    run = Run(program, "touch began\ntrue\n", "--free-for", "0", "--gpus", "1-2")
    run.says("waiting: ")
    why = (
        rf"waiting: gpu 1: root sleep 11\.0 GiB for [\d.]+ s{re.escape(MINE)} · "
        rf"gpu 2: leased by root \(pid {pid}, job 1 \"wide\" of run [0-9a-f]{{6}}\) for [\d.]+ s"
    )
    assert re.fullmatch(why, run.waits[0])
    began, looks = time.monotonic(), idle_gpus.calls("nvmlDeviceGetMemoryInfo_v2")
    until(lambda: idle_gpus.calls("nvmlDeviceGetMemoryInfo_v2") >= looks + 3, "it looks again")
    assert time.monotonic() - began > 1, "it looks seldom"
    assert len(run.waits) == 1
    idle_gpus.show([a_gpu(0), used._replace(processes=(), used=5 * GIB), a_gpu(2)])
    run.says("waiting: gpu 1: 5.0 GiB used by others · gpu 2: leased by root")
    os.kill(pid, 15)
    idle_gpus.show([a_gpu(0), a_gpu(1), a_gpu(2)])
    assert run.end() == (0, [])
    assert (len(run.waits), (program.directory / "began").exists()) == (2, True)


def test_a_gpu_that_another_scheduler_leased_meanwhile_is_waited_for_in_line_and_had_at_once(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int]
) -> None:
    idle_gpus.show([a_gpu(0, used=GIB, processes=[Process(sleeper(), GIB)])])
    run = Run(program, "touch began\n")
    run.says("waiting: gpu 0: root sleep 1.0 GiB for ")
    other = program.start("--ignore-occupancy", "-q")
    program.feed(other, HOLDS)
    run.says("waiting: gpu 0: leased by root (pid ")
    idle_gpus.show([a_gpu(0)])
    (program.directory / "go").touch()
    assert run.end() == (0, [])
    assert other.wait(timeout=120) == 0
    assert len(run.waits) == 2  # the other one's job is not somebody who might come back


def test_quiet_hides_the_waiting_line(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0, used=GIB)])
    run = Run(program, "echo began\n", "-q")
    until(lambda: idle_gpus.calls("nvmlDeviceGetMemoryInfo_v2") >= 8, "it has waited for more than a moment")
    run.process.terminate()
    assert run.end() == (143, [])
    assert run.waits == []


def test_a_job_that_waits_for_memory_alone_says_so(
    program: Program, idle_gpus: StandIn, sleeper: Callable[..., int]
) -> None:
    idle_gpus.show([a_gpu(0, used=20 * GIB, processes=[Process(sleeper(), 20 * GIB)])])
    run = Run(program, "echo began #: mem=70G\n", "--share-with", "me")
    until(lambda: run.waits, "it says why")
    idle_gpus.show([a_gpu(0)])
    assert run.end() == (0, ["began"])
    assert [line[:16] for line in run.waits] == ["waiting: gpu 0: "]


# ---- How often NVML is asked to start


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--gpus", a_gpu(0).uuid, "--ignore-occupancy"], 0),
        (["--gpus", "0", "--ignore-occupancy"], 1),  # for the UUID, by which everybody leases it
        (["--ignore-occupancy"], 1),
        (["--gpus", "0-3"], 1),
        ([], 1),
        (["--dry-run"], 1),
        (["--version"], 0),
    ],
)
def test_nvml_is_initialised_once_at_most_and_not_at_all_when_nothing_is_asked_of_it(
    program: Program, idle_gpus: StandIn, args: list[str], expected: int
) -> None:
    done = program.run(*args, stdin="true #: mem=1G\n" * 100)
    assert (done.returncode, idle_gpus.initialisations) == (0, expected)


def test_nvml_is_initialised_once_also_when_a_job_waits_until_an_error_has_gone(
    program: Program, idle_gpus: StandIn
) -> None:
    idle_gpus.show([a_gpu(0, errors={"nvmlDeviceGetMemoryInfo_v2": UNKNOWN})])
    run = Run(program, "echo began\n")
    run.says("waiting: gpu 0: NVML reports: Unknown Error")
    idle_gpus.show([a_gpu(0)])
    assert run.end() == (0, ["began"])
    assert idle_gpus.initialisations == 1
