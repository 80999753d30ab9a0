"""Lease files that cannot be trusted or used: a clear sentence, exit code 2, no job; and nothing is ever deleted."""

import json
import os
import re
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Program, has_text, until
from tests.support.sharing import (
    ALONE,
    LEASE,
    UID,
    endless,
    held,
    in_line,
    is_leased,
    leases,
    lonely,
    mount_namespace,
    needs_users,
    start_as,
    unmeasured,
    were_alone,
)

FILES = [LEASE, f"{LEASE}.next"]


def refused(program: Program, *says: str) -> None:
    """The scheduler refuses to run, in one sentence that says all of this."""
    done = program.run(*ALONE, stdin="touch ran\n")
    check_refusal(program.directory, done.returncode, done.stderr.decode(), *says)


def check_refusal(directory: Path, code: int, text: str, *says: str) -> None:
    assert code == 2, text
    assert text.count("\n") == 1, text
    assert text.startswith("simple_gpu_scheduler: ")
    for words in says:
        assert words in text
    assert not (directory / "ran").exists()


def shared(directory: Path) -> Path:
    """A directory as it should be."""
    directory.mkdir(exist_ok=True)
    directory.chmod(0o1777)
    return directory


@pytest.fixture
def open_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory like /tmp, for other users too."""
    needs_users()
    with tempfile.TemporaryDirectory(prefix="sgs_files_") as name:
        directory = Path(name)
        directory.chmod(0o1777)
        monkeypatch.setenv("SGS_LEASE_DIR", f"{name}/leases")
        yield directory


def test_a_directory_that_is_a_symbolic_link_is_refused(program: Program, tmp_path: Path) -> None:
    elsewhere = shared(tmp_path / "elsewhere")
    leases().symlink_to(elsewhere)
    refused(program, str(leases()), "a symbolic link", "SGS_LEASE_DIR")
    assert not list(elsewhere.iterdir())


def test_a_directory_that_is_a_dangling_link_is_refused(program: Program, tmp_path: Path) -> None:
    leases().symlink_to(tmp_path / "nothing")
    refused(program, str(leases()), "a symbolic link", "SGS_LEASE_DIR")
    assert not (tmp_path / "nothing").exists()


def test_a_directory_with_a_relative_path_is_refused(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two schedulers would mean two directories by it."""
    monkeypatch.setenv("SGS_LEASE_DIR", "relative")
    refused(program, "SGS_LEASE_DIR=relative", "absolute path")


def test_a_directory_that_is_a_file_is_refused(program: Program) -> None:
    leases().write_text("precious")
    refused(program, str(leases()), "not a directory", "SGS_LEASE_DIR")
    assert leases().read_text() == "precious"


def test_a_directory_in_one_that_is_not_there_is_refused(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGS_LEASE_DIR", f"{leases()}/below")
    refused(program, str(leases()), "No such file or directory", "SGS_LEASE_DIR")
    assert not leases().parent.exists()


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o770, 0o757])
def test_a_directory_in_which_users_can_delete_each_others_files_is_refused(program: Program, mode: int) -> None:
    leases().mkdir()
    leases().chmod(mode)
    refused(program, str(leases()), f"mode {mode:o}", f"chmod 1777 {leases()}")
    assert stat.S_IMODE(leases().stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o711])
def test_a_foreign_directory_that_may_not_be_written_to_is_refused(open_directory: Path, mode: int) -> None:
    program = Program(open_directory)
    leases().mkdir()
    leases().chmod(mode)
    process = start_as(program, UID, *ALONE)
    err = process.communicate(b"touch ran\n", timeout=120)[1].decode()
    check_refusal(program.directory, process.returncode, err, str(leases()), "Permission denied", "SGS_LEASE_DIR")
    assert not list(leases().iterdir())


@pytest.mark.parametrize("name", FILES)
def test_a_foreign_file_that_may_not_be_used_is_refused(open_directory: Path, name: str) -> None:
    program = Program(open_directory)
    (shared(leases()) / name).write_text("precious")
    (leases() / name).chmod(0o600)
    process = start_as(program, UID, *ALONE)
    err = process.communicate(b"touch ran\n", timeout=120)[1].decode()
    path = str(leases() / name)
    check_refusal(
        program.directory, process.returncode, err, path, "owned by root", "Permission denied", "SGS_LEASE_DIR"
    )
    assert (leases() / name).read_text() == "precious"


def _link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def _dangling_link(path: Path, target: Path) -> None:
    path.symlink_to(target.with_name("nothing"))


def _second_name(path: Path, target: Path) -> None:
    path.hardlink_to(target)


def _pipe(path: Path, _target: Path) -> None:
    os.mkfifo(path)


def _directory(path: Path, _target: Path) -> None:
    path.mkdir()


def _device(path: Path, _target: Path) -> None:
    if os.geteuid():
        pytest.skip("making a device takes root")
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))


TRAPS = [
    (_link, "a symbolic link"),
    (_dangling_link, "a symbolic link"),
    (_second_name, "has a second hard link"),
    (_pipe, "is not a regular file"),
    (_directory, "Is a directory"),
    (_device, "is not a regular file"),
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("trap", "says"), TRAPS)
def test_a_file_that_may_be_a_trap_is_refused(
    program: Program, tmp_path: Path, trap: Callable[[Path, Path], None], says: str, name: str
) -> None:
    target = tmp_path / "target"
    target.write_text("precious" * 1000)
    trap(shared(leases()) / name, target)
    before = os.lstat(leases() / name)
    refused(program, str(leases() / name), says)
    assert target.read_text() == "precious" * 1000
    assert os.lstat(leases() / name).st_ino == before.st_ino
    assert not (tmp_path / "nothing").exists()


TWO = ("--gpus", "0", "1", "--ignore-occupancy")
WHICH = "echo $CUDA_VISIBLE_DEVICES\n"


@pytest.mark.parametrize("name", ["index-1", "index-1.next"])
@pytest.mark.parametrize(("trap", "says"), TRAPS)
def test_one_bad_file_sets_aside_its_gpu_alone_for_whatever_wants_gpus(
    program: Program, tmp_path: Path, trap: Callable[[Path, Path], None], says: str, name: str
) -> None:
    (tmp_path / "target").write_text("precious")
    trap(shared(leases()) / name, tmp_path / "target")
    done = program.run(*TWO, stdin=WHICH * 3)
    assert (done.returncode, done.stdout) == (0, b"0\n" * 3), done.stderr
    problem = rf"the lease file {re.escape(str(leases() / name))}.* {says}"
    line = re.compile(rf"gpu 1 is left out: .*{problem}.*")
    assert len(line.findall(done.stderr.decode())) == 1
    done = program.run("run", "--no-wait", *TWO, "sh", "-c", WHICH)
    assert (done.returncode, done.stdout, len(line.findall(done.stderr.decode()))) == (0, b"0\n", 1)
    done = program.run("run", "--no-wait", "-n", "2", *TWO, "true")
    assert done.returncode == 75
    assert re.search(rf"fewer than 2 GPUs are free: gpu 1: .*{problem}", done.stderr.decode())
    done = program.run("gpus", *TWO, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    free, bad = json.loads(done.stdout)
    assert (free["free"], free["reason"], bad["free"], bad["leased"]) == (True, None, False, None)
    assert re.search(problem, bad["reason"])
    assert re.search(problem, program.run("gpus", *TWO).stdout.decode().splitlines()[2])
    assert (tmp_path / "target").read_text() == "precious"


def test_a_foreign_file_that_may_not_be_used_sets_aside_its_gpu_alone(open_directory: Path) -> None:
    program = Program(open_directory)
    (shared(leases()) / "index-1").write_text("precious")
    (leases() / "index-1").chmod(0o600)
    process = start_as(program, UID, *TWO)
    out, err = process.communicate(f"{WHICH * 3}".encode(), timeout=120)
    assert (process.returncode, out) == (0, b"0\n" * 3)
    assert err.count(b"gpu 1 is left out: ") == err.count(b"owned by root: Permission denied") == 1


def test_bad_files_for_all_gpus_are_an_error_at_once(program: Program) -> None:
    for gpu in "01":
        os.mkfifo(shared(leases()) / f"index-{gpu}")
    done = program.run(*TWO, stdin="touch ran\n")
    check_refusal(program.directory, done.returncode, done.stderr.decode(), "index-", "is not a regular file")


def test_a_gpu_whose_files_are_repaired_is_used_again(program: Program) -> None:
    os.mkfifo(shared(leases()) / "index-1")
    process = program.start(*TWO)
    program.feed(process, f"{WHICH.strip()} #: gpus=2\n")
    assert process.stderr
    lines = [process.stderr.readline().decode() for _ in range(2)]
    assert [line[:18] for line in lines] == ["gpu 1 is left out:", "waiting: gpu 1: th"]
    (leases() / "index-1").unlink()
    assert process.communicate(timeout=120)[0] == b"0,1\n"


def test_a_file_that_goes_bad_in_mid_run_sets_aside_its_gpu_alone(program: Program) -> None:
    process = program.start(*TWO, env=unmeasured())
    assert process.stdout
    give(process, "echo $CUDA_VISIBLE_DEVICES #: gpus=2\n")
    assert process.stdout.readline() == b"0,1\n"
    (leases() / "index-0").unlink()
    (leases() / "index-0").symlink_to("elsewhere")
    time.sleep(1.1)  # it trusts its last look for a second
    program.feed(process, WHICH * 3)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, b"1\n" * 3), err
    assert err.count(b"gpu 0 is left out: the lease file") == 1


def test_what_other_programs_put_into_the_files_is_not_cut_off(program: Program) -> None:
    for name in FILES:
        (shared(leases()) / name).write_bytes(b"x" * 5000)
    done = program.run(*ALONE, stdin="touch ran\n" * 3)
    assert done.returncode == 0
    for name in FILES:
        contents = (leases() / name).read_bytes()
        assert len(contents) == 5000
        assert contents[4096:] == b"x" * (5000 - 4096)


@pytest.mark.parametrize("contents", [b"", b"sgs1 99999999999 /x", b"\xff" * 600])
def test_what_other_programs_wrote_about_a_holder_does_no_harm(program: Program, contents: bytes) -> None:
    with held():
        (leases() / LEASE).write_bytes(contents)
        process = program.start(*ALONE)
        program.feed(process, "touch ran\n")
        assert process.stderr
        line = process.stderr.readline().decode()
        assert line == "waiting: gpu 0: leased by a process that is not visible from here\n"
        assert not (program.directory / "ran").exists()
    assert process.wait(timeout=120) == 0


def test_no_file_is_ever_deleted(program: Program) -> None:
    commands = "true\nfalse\ntrue #: gpus=2\n" * 5
    assert program.run("--gpus", "0 1", "--ignore-occupancy", stdin=commands).returncode == 1
    before = {path.name: path.stat().st_ino for path in leases().iterdir()}
    assert set(before) == {"index-0", "index-0.next", "index-1", "index-1.next"}
    (leases() / "strange").touch()
    assert program.run("--gpus", "0 1", "--ignore-occupancy", stdin=commands).returncode == 1
    assert {path.name: path.stat().st_ino for path in leases().iterdir() if path.name != "strange"} == before
    assert (leases() / "strange").exists()


@pytest.mark.parametrize("made", ["", "touch leases/index-0 leases/index-0.next; chmod 666 leases/*;"])
def test_a_read_only_file_system_is_refused(program: Program, made: str) -> None:
    leases().mkdir()
    script = (
        f"mount -t tmpfs -o mode=1777 tmpfs leases && {made} mount -o remount,ro leases && echo 'touch ran' | "
        f"$SGS {' '.join(ALONE)}; echo $?"
    )
    text, _, code = mount_namespace(script, program.directory).strip().rpartition("\n")
    check_refusal(program.directory, int(code), text + "\n", str(leases() / LEASE), "Read-only file system")


def test_a_read_only_place_for_the_directory_is_refused(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    (program.directory / "place").mkdir()
    monkeypatch.setenv("SGS_LEASE_DIR", f"{program.directory}/place/leases")
    script = f"mount -t tmpfs -o ro tmpfs place && echo 'touch ran' | $SGS {' '.join(ALONE)}; echo $?"
    text, _, code = mount_namespace(script, program.directory).strip().rpartition("\n")
    check_refusal(program.directory, int(code), text + "\n", str(leases()), "Read-only file system")


def test_a_full_disk_is_refused_each_time(program: Program) -> None:
    """What was made of the files until there was no room makes the next run no more sure."""
    leases().mkdir()
    script = (
        "mount -t tmpfs -o size=4k,mode=1777 tmpfs leases && head -c 9999 /dev/zero > leases/fill; "
        "for i in 1 2 3 4; do "
        f"echo 'touch ran' | $SGS {' '.join(ALONE)} 2>&1; echo $?; done"
    )
    lines = mount_namespace(script, program.directory).splitlines()
    refusals = [line for line in lines if "leases/index-0" in line]
    codes = [line for line in lines if line.isdigit()]
    assert codes == ["2"] * 4, lines
    assert len(refusals) == 4
    assert all("No space left on device" in line for line in refusals)
    assert not (program.directory / "ran").exists()


def test_a_disk_that_fills_up_in_mid_run_takes_no_lease_away(program: Program) -> None:
    leases().mkdir()
    job = lonely(program.directory)
    # Files as large as a record are overwritten where they are; the jobs note their company elsewhere.
    script = (
        "mount -t tmpfs -o size=16k,mode=1777 tmpfs leases && "
        f"( echo '{job}'; until [ -s done ]; do sleep 0.05; done; head -c 99999 /dev/zero > leases/fill; "
        f"yes '{job}' | head -20 ) | "
        f"$SGS {' '.join(ALONE)} --quiet & until [ -s leases/fill ]; do sleep 0.05; done; yes '{job}' | head -20 | "
        f"$SGS {' '.join(ALONE)} --quiet; wait"
    )
    mount_namespace(script, program.directory)
    assert were_alone(program.directory)
    assert len((program.directory / "done").read_text().split()) == 41


def idle(program: Program, **settings: object) -> "subprocess.Popen[bytes]":
    """A scheduler that has run a job and waits for more, long enough to look at its files anew."""
    process = program.start(*ALONE, env=unmeasured(), **settings)
    give(process, "echo one\n")
    assert process.stdout
    assert process.stdout.readline() == b"one\n"
    time.sleep(1.1)  # it trusts its last look for a second
    return process


def give(process: "subprocess.Popen[bytes]", commands: str) -> None:
    assert process.stdin
    process.stdin.write(commands.encode())
    process.stdin.flush()


@pytest.mark.parametrize("names", [[LEASE], FILES])
def test_a_scheduler_idle_when_the_files_were_deleted_excludes_later_ones(program: Program, names: list[str]) -> None:
    was_idle = idle(program)
    for name in names:
        (leases() / name).unlink()
    came = program.start(*ALONE, env=unmeasured())
    program.feed(came, f"{lonely(program.directory)}\n" * 50)
    until((program.directory / "done").exists)
    give(was_idle, f"{lonely(program.directory)}\n" * 50)
    program.feed(was_idle, "")
    for process in (was_idle, came):
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert were_alone(program.directory)


@pytest.mark.parametrize("names", [[LEASE], FILES])
def test_a_scheduler_that_never_pauses_soon_has_the_files_that_others_would_use(
    program: Program, names: list[str]
) -> None:
    """It keeps its lease from one job to the next, so it must ask whether that is still the lease."""
    job = lonely(program.directory)
    with endless(program, job):
        until((program.directory / "done").exists)
        for name in names:
            (leases() / name).unlink()
        until(lambda: (leases() / LEASE).exists() and is_leased())
        came = program.start(*ALONE, env=unmeasured())
        program.feed(came, f"{job}\n" * 20)
        assert came.wait(timeout=120) == 0
    assert were_alone(program.directory)


@pytest.mark.parametrize("again", [False, True])
def test_a_run_that_was_idle_when_the_directory_was_deleted_continues(program: Program, *, again: bool) -> None:
    """What cleans up /tmp takes a directory away too, and a queue on a named pipe may be idle for weeks."""
    process = idle(program)
    for name in FILES:
        (leases() / name).unlink()
    leases().rmdir()
    if again:
        with held():
            give(process, "touch ran\n")
            until(lambda: in_line() == 1)
            assert not (program.directory / "ran").exists()
    else:
        give(process, "touch ran\n")
    until((program.directory / "ran").exists)
    program.feed(process, "")
    assert process.wait(timeout=120) == 0
    assert stat.S_IMODE(leases().stat().st_mode) == 0o1777


@pytest.mark.parametrize("name", FILES)
def test_a_scheduler_idle_when_a_file_became_a_trap_waits_until_it_is_removed(program: Program, name: str) -> None:
    """It says why; and neither crashes nor takes the files that it had open for those that count."""
    said = program.directory / "stderr"
    with said.open("wb") as stderr:
        process = idle(program, stderr=stderr)
    (leases() / name).unlink()
    os.mkfifo(leases() / name)
    give(process, "touch ran\n")
    until(lambda: process.poll() is not None or has_text(said, "waiting: gpu 0")(), "it says why it waits")
    assert process.poll() is None, said.read_text()
    assert re.search(rf"^waiting: gpu 0: .*{re.escape(str(leases() / name))}", said.read_text(), re.MULTILINE)
    assert not (program.directory / "ran").exists()
    (leases() / name).unlink()
    until((program.directory / "ran").exists)
    program.feed(process, "")
    assert process.wait(timeout=120) == 0


def test_a_scheduler_in_line_when_the_files_were_deleted_excludes_later_ones(program: Program) -> None:
    with held():
        waits = program.start(*ALONE, env=unmeasured())
        program.feed(waits, f"{lonely(program.directory)}\n" * 30)
        until(lambda: in_line() == 1)
        time.sleep(1.1)  # as in `idle`
        for name in FILES:
            (leases() / name).unlink()
        came = program.start(*ALONE, env=unmeasured())
        program.feed(came, f"{lonely(program.directory)}\n" * 30)
        until((program.directory / "done").exists)
    for process in (waits, came):
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert were_alone(program.directory)
