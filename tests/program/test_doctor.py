"""`doctor`: what it says of real machines where something is wrong."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, Program, is_alive
from tests.support.machine_file import on_machine_with
from tests.support.nvml import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    LIB_RM_VERSION_MISMATCH,
    NO_PERMISSION,
    NOT_SUPPORTED,
    Process,
    StandIn,
    a_gpu,
)
from tests.support.processes import kill_if_alive
from tests.support.sharing import UID, as_user, leases, mount_namespace, needs_users, unmeasured

NAMES = [
    "driver", "GPUs", "lease directory", "machine file", "process IDs", "/proc", "leftovers of jobs", "inotify",
    "open files", "processes", "state directory", "logout", "versions", "shell completion",
]  # fmt: skip
Found = Mapping[str, tuple[str, str]]


def told(text: str | bytes) -> Found:
    """Of each check its grade, and what it says."""
    return {row["check"]: (row["grade"], f"{row['found']}; {row['advice']}") for row in json.loads(text)}


def doctor(program: Program, **settings) -> Found:
    done = program.run("doctor", "--json", **settings)
    assert done.stderr == b""
    found = told(done.stdout)
    assert done.returncode == int("FAIL" in {grade for grade, _ in found.values()})
    return found


@pytest.fixture
def good(idle_gpus: StandIn) -> StandIn:
    leases().mkdir()
    leases().chmod(0o1777)
    return idle_gpus


@pytest.mark.parametrize(("shell", "grade"), [("/bin/bash", "warn"), ("", "ok")])
def test_a_line_for_each_check_and_exit_code_0_where_no_promise_is_broken(
    program: Program, good: StandIn, monkeypatch: pytest.MonkeyPatch, shell: str, grade: str
) -> None:
    monkeypatch.setenv("SHELL", shell)
    monkeypatch.setenv("HOME", str(program.directory))
    done = program.run("doctor")
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    assert [line[6:].partition("  ")[0] for line in lines] == NAMES
    assert all(line.startswith(("ok    ", "warn  ")) for line in lines)
    assert lines[0] == "ok    driver             NVIDIA driver 570.86.15 answers through NVML"
    assert lines[1] == "ok    GPUs               NVML lists 4"
    assert lines[-1].startswith(f"{grade:6}shell completion   ")
    assert list(doctor(program)) == NAMES
    assert not (program.directory / "state").exists()
    assert not list(leases().iterdir())
    assert good.calls("nvmlSystemGetDriverVersion") == 2


def test_it_is_printed_whole_with_nothing_to_be_read_as_control_characters(program: Program, good: StandIn) -> None:
    good.show([a_gpu(0)], driver="570\x1b[2J")
    done = program.run("doctor")
    assert b"570\\x1b[2J answers" in done.stdout


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (DRIVER_NOT_LOADED, "the NVIDIA driver is not loaded"),
        (LIB_RM_VERSION_MISMATCH, "a reboot fixes that"),
        (NO_PERMISSION, "this user may not query the NVIDIA driver"),
    ],
)
def test_an_nvml_that_does_not_work_fails(program: Program, good: StandIn, code: int, words: str) -> None:
    good.show([a_gpu(0)], init_error=code)
    found = doctor(program)
    grade, says = found["driver"]
    assert grade == "FAIL"
    assert words in says
    assert "nvidia-smi must work first" in says
    assert "GPUs" not in found


def test_a_machine_without_nvml_fails(program: Program) -> None:
    grade, says = doctor(program)["driver"]
    assert grade == "FAIL"
    assert "NVML was not found (libnvidia-ml.so.1" in says


def test_a_gpu_that_is_lost_fails_and_is_named(program: Program, good: StandIn) -> None:
    good.show([a_gpu(0), a_gpu(1, errors={"*": GPU_IS_LOST})])
    grade, says = doctor(program)["GPUs"]
    assert grade == "FAIL"
    assert says.startswith("GPU 1: fallen off the bus")
    good.show([])
    assert doctor(program)["GPUs"][1].startswith("NVML lists none")


def test_gpus_whose_processes_are_not_told_or_not_there_are_warned_of(program: Program, good: StandIn) -> None:
    silent = {f"nvmlDeviceGetComputeRunningProcesses{version}": NOT_SUPPORTED for version in ("", "_v2", "_v3")}
    good.show([a_gpu(0, errors=silent), a_gpu(1, processes=[Process(2**22 + 5)])])
    found = doctor(program)
    assert found["GPUs"][0] == "warn"
    assert "does not report which processes use GPU 0" in found["GPUs"][1]
    assert found["process IDs"][0] == "warn"


HUNG = """
import os
from simple_gpu_scheduler.doctor.driver import ask_driver
os.kill = lambda pid, number: print(pid)  # one that is stuck in the kernel is not killed either
facts = ask_driver(0.3)
assert facts.is_hung
print(facts.problem)
"""


def test_a_driver_that_hangs_does_not_hang_it(good: StandIn) -> None:
    """Not even a reader of its output, who waits for all that have it open."""
    good.show([a_gpu(0)], delays={"nvmlInit_v2": 100_000_000, "nvmlInitWithFlags": 100_000_000})
    done = subprocess.run(
        [sys.executable, "-c", HUNG], capture_output=True, text=True, timeout=60, check=False, env=unmeasured()
    )
    stuck, _, said = done.stdout.partition("\n")
    assert is_alive(int(stuck))
    kill_if_alive(int(stuck))
    assert (said, done.stderr) == ("the NVIDIA driver did not answer within 0 s\n", "")


def test_an_nvml_that_crashes_does_not_crash_it(program: Program, tmp_path: Path) -> None:
    (tmp_path / "nvml").mkdir()
    source = tmp_path / "crash.c"
    source.write_text("void nvmlInitWithFlags(void) { *(volatile int *)0 = 1; }\n")
    if subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", str(tmp_path / "nvml" / "libnvidia-ml.so.1"), str(source)], check=False
    ).returncode:
        pytest.skip("there is no compiler")
    found = doctor(program, env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path / "nvml")})
    assert found["driver"][1].startswith("the NVML query crashed")


def bad_mode() -> None:
    leases().chmod(0o777)


def a_file() -> None:
    leases().rmdir()
    leases().write_text("")


def a_link() -> None:
    leases().rmdir()
    leases().symlink_to("elsewhere")


def a_bad_lease() -> None:
    os.mkfifo(leases() / "GPU-1")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (bad_mode, "chmod 1777"),
        (a_file, "not a directory"),
        (a_link, "a symbolic link"),
        (a_bad_lease, "GPU-1 is not a regular file"),
    ],
)
@pytest.mark.usefixtures("good")
def test_a_lease_directory_that_cannot_be_used_fails(program: Program, spoil: Callable[[], None], words: str) -> None:
    spoil()
    grade, says = doctor(program)["lease directory"]
    assert grade == "FAIL"
    assert words in says


@pytest.mark.usefixtures("good")
def test_a_lease_directory_of_another_user_or_of_none_is_warned_of(program: Program) -> None:
    if os.geteuid():
        pytest.skip("to give files away takes root")
    os.chown(leases(), UID, UID)
    grade, says = doctor(program)["lease directory"]
    assert grade == "warn"
    assert "who could delete leases of others; root should take it over: chown root" in says
    leases().rmdir()
    grade, says = doctor(program)["lease directory"]
    assert grade == "warn"
    assert "does not exist yet" in says


@pytest.mark.unmeasured
@pytest.mark.usefixtures("good")
def test_the_files_of_a_machine_are_read(program: Program) -> None:
    script = """
        export SHELL=/bin/bash HOME=$PWD
        mkdir -p /etc/systemd /etc/tmpfiles.d
        $SGS doctor --json; echo ===
        mount -t tmpfs -o mode=755 tmpfs /mnt; mkdir -m 1777 /mnt/leases
        echo 'q /mnt 1777 root root 10d' > /etc/tmpfiles.d/mnt.conf
        printf 'KillUserProcesses=yes\\nKillExcludeUsers=\\n' > /etc/systemd/logind.conf
        echo 'eval "$(_SGS_COMPLETE=bash_source sgs)"' > .bashrc
        good='lease-directory = "/mnt/leases"'
        echo "$good" > /etc/simple_gpu_scheduler.toml
        $SGS doctor --json; echo ===
        echo 'd /mnt/leases 1777 root root -' >> /etc/tmpfiles.d/mnt.conf
        echo 'x = 1' > /etc/simple_gpu_scheduler.toml
        $SGS doctor --json; echo ===
        echo "$good" > /etc/simple_gpu_scheduler.toml
        $SGS doctor --json; echo ===
        mkdir -p systemd-private-1-x/tmp; mkdir -m 1777 systemd-private-1-x/tmp/leases
        mount --bind systemd-private-1-x/tmp /mnt
        $SGS doctor --json
    """
    answers = on_machine_with('lease-directory = "relative"', script, program.directory).split("===\n")
    broken, warned, unknown, fine, private = map(told, answers)
    assert broken["machine file"][0] == "FAIL"
    assert "lease-directory must be an absolute path" in broken["machine file"][1]
    assert broken["shell completion"][0] == "warn"
    grade, says = warned["lease directory"]
    assert grade == "warn"
    assert says.startswith("old files in /mnt/leases are deleted by systemd-tmpfiles after 10d; exempt it from that")
    assert warned["logout"][0] == "warn"
    assert warned["shell completion"] == ("ok", "set up for bash; None")
    assert unknown["machine file"][0] == unknown["lease directory"][0] == "FAIL"
    assert fine["lease directory"][0] == "ok"
    assert private["lease directory"][0] == "FAIL"
    assert "PrivateTmp" in private["lease directory"][1]


@pytest.mark.unmeasured
@pytest.mark.usefixtures("good")
def test_a_variable_that_names_another_lease_directory_than_the_machines_file_fails(program: Program) -> None:
    script = "SGS_LEASE_DIR=/tmp/other $SGS doctor --json"
    grade, says = told(on_machine_with('lease-directory = "/tmp/of machine"', script, program.directory))[
        "lease directory"
    ]
    assert grade == "FAIL"
    assert "SGS_LEASE_DIR=/tmp/other, but the schedulers of this machine share /tmp/of machine" in says


@pytest.mark.unmeasured
@pytest.mark.usefixtures("good")
def test_a_full_or_read_only_disk_fails_and_a_pid_namespace_is_warned_of(program: Program) -> None:
    script = """
        mkdir small; mount -t tmpfs -o size=1m tmpfs small; export XDG_STATE_HOME=$PWD/small
        $SGS doctor --json; echo ===
        mount -o remount,ro small; $SGS doctor --json; echo ===
        unshare --pid --fork --mount-proc $SGS doctor --json
    """
    full, read_only, contained = map(told, mount_namespace(script, program.directory, unmeasured()).split("===\n"))
    assert full["state directory"][0] == "FAIL"
    assert "free some space" in full["state directory"][1]
    assert read_only["state directory"][0] == "FAIL"
    assert "no run can be recorded in" in read_only["state directory"][1]
    assert contained["process IDs"][0] == "warn"
    assert "--pid=host" in contained["process IDs"][1]


@pytest.mark.unmeasured
@pytest.mark.open_to_others
@pytest.mark.usefixtures("good")
def test_it_answers_for_the_user_who_asks(program: Program) -> None:
    needs_users()
    leases().chmod(0o755)
    hidden = program.directory / "proc"
    script = f"""
        mount -t proc -o hidepid=2 proc /proc 2>/dev/null
        ulimit -n 100; ulimit -u 90
        exec {" ".join([*as_user(UID), *SCHEDULER])} doctor --json
    """
    done = mount_namespace(
        f"unshare --pid --fork bash -c '{script}'", program.directory, unmeasured() | {"HOME": str(hidden)}
    )
    found = told(done)
    assert found["lease directory"][0] == found["state directory"][0] == "FAIL"
    assert found["open files"] == (
        "warn",
        "at most 100 per process (ulimit -n); with many GPUs that may be too few: ulimit -n 1024",
    )
    assert found["processes"][0] == "warn"
    assert found["/proc"][0] == "warn"
    assert "hidepid" in found["/proc"][1]
