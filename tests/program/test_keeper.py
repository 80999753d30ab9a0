"""The keeper as jobs meet it: with it everything is as without it, except their parent."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import pytest

from simple_gpu_scheduler.keeper.survivors import Traces, find_alive
from tests.conftest import SCHEDULER, UNMEASURED, Program, has_text, is_alive, until

HOLD = "echo $PPID > keeper; until [ -e go ]; do sleep 0.02; done"
PROBE = """
import json, os, resource, sys
fds = {}
for fd in os.listdir("/proc/self/fd"):
    try:
        fds[fd] = os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:  # the listing's own
        pass
lines = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
words = ("SigBlk", "SigIgn", "SigCgt", "ShdPnd", "SigPnd", "Umask", "Seccomp", "NoNewPrivs", "Groups")
limits = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")}
limits.pop("RLIMIT_MSGQUEUE", None)  # which tells jobs apart
report = {
    "fds": fds,
    "status": {name: lines.get(name, "").strip() for name in words},
    "limits": limits,
    "cwd": os.getcwd(),
    "leads": os.getsid(0) == os.getpgid(0),
    "nice": os.nice(0),
    "oom": open("/proc/self/oom_score_adj").read(),
    "env": {k: v for k, v in os.environ.items() if "SGS_RUN" not in k and "SGS_TREE" not in k},
}
json.dump(report, open(sys.argv[1], "w"), default=str)
"""


def keeper_of(program: Program) -> int:
    until(has_text(program.directory / "keeper"))
    return int((program.directory / "keeper").read_text())


def ends(program: Program, *args: str) -> dict[int, tuple[str, str]]:
    """Exit code and signal of each job, as the job log has them."""
    (program.directory / "log.tsv").unlink(missing_ok=True)
    numbers = [*range(1, 17), *range(34, 65)]  # the others stop a shell, or it ignores them
    lines = [f"exit {code}" for code in range(256)] + [f"ulimit -c 0; kill -{number} $$" for number in numbers]
    args = ("-q", "--gpus", "0", *args, "--cpu-slots", "4", "--joblog", "log.tsv")
    done = program.run(*args, stdin="".join(f"{line} #: gpus=0\n" for line in lines))
    rows = [row.split("\t") for row in (program.directory / "log.tsv").read_text().splitlines()[1:]]
    assert len(rows) == len(lines), done.stderr
    return {int(row[0]): (row[6], row[7]) for row in rows}


def test_every_exit_code_and_signal_is_reported_as_without_a_keeper(program: Program) -> None:
    told = ends(program)
    assert [told[code + 1] for code in range(256)] == [(str(code), "0") for code in range(256)]
    assert told[256 + 9][1] == "9"
    assert told[256 + 15][1] == "15"
    assert told == ends(program, "--no-journal")


@pytest.mark.parametrize("options", [(), ("--no-journal",)])
def test_the_parent_of_jobs_is_the_keeper_and_of_that_the_scheduler(program: Program, options: tuple[str, ...]) -> None:
    process = program.start("--gpus", "0", *options)
    program.feed(process, f"{HOLD}\n")
    keeper = keeper_of(program)
    status = Path(f"/proc/{keeper}/status").read_text()
    assert f"PPid:\t{process.pid}\n" in status
    (program.directory / "go").touch()
    assert process.wait(timeout=120) == 0


@pytest.mark.parametrize("ending", ["", "SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("options", [(), ("--no-journal",)])
def test_nothing_is_left_of_the_keeper(program: Program, ending: str, options: tuple[str, ...]) -> None:
    process = program.start("--gpus", "0", "-q", *options, env=UNMEASURED)
    program.feed(process, f"{HOLD}\n")
    keeper = keeper_of(program)
    if ending:
        process.send_signal(signal.Signals[ending])
    if ending != "SIGTERM":
        (program.directory / "go").touch()
    process.wait(timeout=120)
    until(lambda: not Path(f"/proc/{keeper}").exists(), "neither a process nor a zombie is left")


def test_signals_for_others_do_nothing_to_the_keeper(program: Program) -> None:
    process = program.start("--gpus", "0")
    program.feed(process, f"{HOLD}; exit 0\nexit 0\n")
    keeper = keeper_of(program)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGPIPE):
        os.kill(keeper, number)
    (program.directory / "go").touch()
    assert process.communicate(timeout=120)[1].decode().splitlines()[-1].startswith("2 succeeded, 0 failed")
    assert process.returncode == 0


def test_jobs_continue_and_their_ends_are_known_when_the_keeper_is_killed(program: Program) -> None:
    process = program.start("--gpus", "0", "--joblog", "log.tsv")
    program.feed(process, f"{HOLD}; exit 7\nexit 8\n")
    os.kill(keeper_of(program), signal.SIGKILL)
    assert process.stderr
    while b"the keeper process was killed" not in (line := process.stderr.readline()):
        assert line
    (program.directory / "go").touch()
    assert process.wait(timeout=120) == 1
    rows = (program.directory / "log.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[6] for row in rows] == ["7", "8"]


# What cannot start.


def test_a_shell_that_went_away_is_reported_for_each_job(program: Program) -> None:
    shell = program.directory / "shell"
    shell.symlink_to("/bin/sh")
    done = program.run("--gpus", "0", "--shell", "./shell", stdin="rm shell\ntrue\nln -s /bin/sh shell\n")
    said = done.stderr.decode()
    assert said.count("No such file or directory") == 2
    assert "1 succeeded, 0 failed, 0 timed out, 2 not started" in said
    assert done.returncode == 1


def test_a_command_that_is_too_long_for_the_system_is_reported_and_the_next_one_runs(program: Program) -> None:
    def little_stack() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (512 * 1024, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    for args in ((), ("--no-journal",)):
        command = f": {'x' * 131_000}\n"
        done = program.run("--gpus", "0", *args, stdin=f"{command}true\n", preexec_fn=little_stack)
        assert b"Argument list too long" in done.stderr
        assert b"1 succeeded, 0 failed, 0 timed out, 1 not started" in done.stderr


def test_the_longest_command_starts(program: Program) -> None:
    command = f"echo {'x' * (131_071 - 20)} > out"
    assert program.run("--gpus", "0", "-q", stdin=f"{command}\n").returncode == 0
    assert (program.directory / "out").stat().st_size == 131_071 - 19


@pytest.mark.parametrize("broken", ["os.fork", "threads"])
def test_where_no_keeper_can_be_made_yet_jobs_wait_for_one(program: Program, broken: str) -> None:
    """As with `ulimit -u`, whose count of a user's processes a test cannot know."""
    breaks = {
        "os.fork": "import os\nmake = os.fork\n"
        "def no():\n    global tries\n    tries -= 1\n    if tries: raise BlockingIOError(11, 'again')\n"
        "    return make()\nos.fork = no\n",
        "threads": "import os\nfrom simple_gpu_scheduler.keeper import process\nmake = process.start_thread\n"
        "def no(work):\n    if not os.path.exists('second'):\n        open('second', 'w').close()\n"
        "        raise RuntimeError('no more threads')\n    return make(work)\nprocess.start_thread = no\n",
    }[broken]
    code = f"tries = 3\n{breaks}from simple_gpu_scheduler.cli.main import simple_gpu_scheduler as s; s()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--gpus", "0", "-q"],
        input=b"echo out\nexit 4\n",
        cwd=program.directory,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"out\n"), done.stderr
    assert b"job 2 (line 2) failed with exit code 4" in done.stderr
    # Whether a keeper that ends at once is noticed before the first start is a race.
    assert broken == "threads" or b"waiting: the system allows no new process" in done.stderr


# What a job has of its surroundings.


def report(program: Program, *args: str, more: Mapping[str, str] = MappingProxyType({}), **settings) -> dict:
    """What a job finds; the scheduler's own stdout and stderr are files, and its environment has `more`."""
    (program.directory / "probe.py").write_text(PROBE)
    path = program.directory / "report"
    path.unlink(missing_ok=True)
    with (program.directory / "out").open("w") as out, (program.directory / "err").open("w") as err:
        done = subprocess.run(
            [*SCHEDULER, "--gpus", "0", *args],
            input=f"{sys.executable} {program.directory}/probe.py {path}\n".encode(),
            check=False,
            env={**os.environ, **more},
            **{"cwd": program.directory, "stdout": out, "stderr": err, "timeout": 15, **settings},
        )
    assert done.returncode == 0, (program.directory / "err").read_text()
    return json.loads(path.read_text())


def ignoring(*numbers: int) -> Callable[[], None]:
    return lambda: [signal.signal(number, signal.SIG_IGN) for number in numbers] and None


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"preexec_fn": ignoring(signal.SIGHUP)},
        {"preexec_fn": ignoring(signal.SIGINT, signal.SIGQUIT)},
        {"preexec_fn": ignoring(signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR2, signal.SIGTTOU)},
        {"preexec_fn": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2]) and None},
        {"umask": 0o077},
        {"preexec_fn": lambda: os.nice(3) and None},
        {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))},
        {"more": {"MORE": "a\nb", "EMPTY": "", "CUDA_DEVICE_ORDER": "FASTEST_FIRST", "SGS_JOB": "9"}},
    ],
    ids=["plain", "nohup", "background", "ignored", "blocked", "umask", "nice", "limits", "environment"],
)
def test_a_job_has_what_it_has_without_a_keeper(program: Program, settings: dict) -> None:
    kept = report(program, **settings)
    assert kept == report(program, "--no-journal", **settings)
    assert kept["fds"]["0"] == "/dev/null"
    assert kept["fds"]["1"] == str(program.directory / "out")
    assert kept["fds"]["2"] == str(program.directory / "err")
    assert kept["leads"]


def test_what_the_user_has_opened_is_inherited_anyway(program: Program) -> None:
    with (program.directory / "opened").open("w") as file:
        kept = report(program, pass_fds=(file.fileno(),))
        assert kept["fds"][str(file.fileno())] == file.name
        assert kept == report(program, "--no-journal", pass_fds=(file.fileno(),))


def test_closed_streams_are_as_without_a_keeper(program: Program) -> None:
    def close() -> None:
        os.close(1)
        os.close(2)

    kept = report(program, preexec_fn=close)
    assert kept == report(program, "--no-journal", preexec_fn=close)


@pytest.mark.parametrize("mode", [0o755, 0o311])
def test_chdir_is_where_jobs_run(program: Program, mode: int) -> None:
    directory = program.directory / "there"
    directory.mkdir(mode=mode)
    for relative in (str(directory), "there"):
        kept = report(program, "--chdir", relative)
        assert kept["cwd"] == str(directory)
        assert kept == report(program, "--no-journal", "--chdir", relative)


def test_the_logs_of_jobs_are_as_without_a_keeper(program: Program) -> None:
    kept = report(program, "--logs", "logs")
    names = {fd: name for fd, name in kept["fds"].items() if "/logs/" in name}
    assert set(names) == {"1", "2"}
    assert kept == report(program, "--no-journal", "--logs", "logs")


def test_a_keeper_that_is_stopped_and_continued_loses_nothing(program: Program) -> None:
    process = program.start("--gpus", "0", "-q")
    program.feed(process, f"{HOLD}\nexit 0\n")
    keeper = keeper_of(program)
    os.kill(keeper, signal.SIGSTOP)
    (program.directory / "go").touch()
    os.kill(keeper, signal.SIGCONT)
    assert process.wait(timeout=120) == 0
    until(lambda: not is_alive(keeper))


def test_an_environment_that_looks_like_ours_and_is_not_is_passed_over() -> None:
    sleepers = [
        subprocess.Popen(["sleep", "60"], env={"SGS_TREE": tree})
        for tree in ("/RUN.x.y", "/RUN.", "/RUN.1", "/RUN.7.2")
    ]
    try:
        until(lambda: find_alive(Traces(b"RUN")), "one is found")
        assert list(find_alive(Traces(b"RUN"))) == [(7, 2)]
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


# A keeper that is killed.


def replace_keeper(program: Program, process: "subprocess.Popen[bytes]", survivor: str, next_job: str) -> int:
    """Start a job, kill its keeper, and start another job, both of which run on; the pid of the new keeper."""
    assert process.stdin
    process.stdin.write(f"echo $PPID > first; {survivor} #: gpus=1\n".encode())
    process.stdin.flush()
    until(has_text(program.directory / "first"))
    first = int((program.directory / "first").read_text())
    os.kill(first, signal.SIGKILL)
    until(lambda: not is_alive(first))
    process.stdin.write(f"echo $PPID > second; {next_job} #: gpus=0\n".encode())
    process.stdin.flush()
    until(has_text(program.directory / "second"))
    second = int((program.directory / "second").read_text())
    assert second not in (first, process.pid)
    return second


def open_files(pid: int) -> set[str]:
    """What a process has open; what it closes meanwhile may be missing."""
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(os.readlink(each))
    return found


def test_a_later_keeper_holds_nothing_of_its_scheduler(program: Program) -> None:
    process = program.start("--gpus", "0", "--cpu-slots", "1", env=UNMEASURED)
    wait = "until [ -e go ]; do sleep 0.02; done"
    keeper = replace_keeper(program, process, wait, wait)
    common = {
        name
        for name in open_files(keeper) & open_files(process.pid)
        if "/leases/" in name or name.startswith(("socket:", "anon_inode:"))
    }
    (program.directory / "go").touch()
    assert process.stdin
    process.stdin.close()
    process.stdin = None
    assert process.wait(timeout=120) == 1  # that a keeper was killed is a failure, though the jobs succeeded
    assert not common


def test_a_run_whose_scheduler_is_killed_after_its_keeper_was_is_resumed_at_once(program: Program) -> None:
    process = program.start("--gpus", "0", "--cpu-slots", "1", env=UNMEASURED)
    wait = "until [ -e go ]; do sleep 0.02; done"
    keeper = replace_keeper(program, process, f"{wait}; echo x >> one", f"{wait}; echo x >> two")
    process.kill()
    process.wait()
    resumed = program.start("--resume", "--gpus", "0", "--cpu-slots", "1", stdin=subprocess.DEVNULL)
    assert resumed.stderr
    while b"still run" not in (line := resumed.stderr.readline()):
        assert line
    (program.directory / "go").touch()
    assert resumed.wait(timeout=120) == 0
    assert (program.directory / "two").read_text() == "x\n"  # its keeper knew how it ended
    assert (program.directory / "one").read_text() in ("x\n", "x\nx\n")  # nothing knew its exit code
    until(lambda: not is_alive(keeper))


DAEMONS = {
    "setsid": "setsid sh -c 'echo $$ > daemon; exec sleep 1000' &",
    "double fork": "(sh -c 'echo $$ > daemon; exec sleep 1000' &) ;",
    "no environment": "env -i setsid sh -c 'echo $$ > daemon; exec sleep 1000' &",
}


@pytest.mark.unmeasured
@pytest.mark.parametrize("options", [(), ("--no-journal",)])
@pytest.mark.parametrize("leave", DAEMONS)
def test_what_a_job_leaves_behind_whose_keeper_was_killed_is_ended(
    program: Program, pids: Callable[[str], int], leave: str, options: tuple[str, ...]
) -> None:
    process = program.start("--gpus", "0", "--joblog", "log.tsv", *options)
    survivor = f"{DAEMONS[leave]} until [ -e go ]; do sleep 0.02; done; exit 7"
    program.feed(process, f"echo $PPID > keeper; {survivor}\nexit 8\n")
    keeper = keeper_of(program)
    daemon = pids("daemon")
    os.kill(keeper, signal.SIGKILL)
    until(lambda: not is_alive(keeper))
    (program.directory / "go").touch()
    assert process.wait(timeout=120) == 1
    assert not is_alive(daemon)
    rows = (program.directory / "log.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[6] for row in rows] == ["7", "8"]


@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)])
def test_a_job_whose_keeper_was_killed_is_ended_with_its_run(
    program: Program, pids: Callable[[str], int], signals: tuple[signal.Signals, ...]
) -> None:
    process = program.start("--gpus", "0", env=UNMEASURED)
    program.feed(process, "echo $PPID > keeper; echo $$ > job; exec sleep 1000\n")
    job, keeper = pids("job"), keeper_of(program)
    os.kill(keeper, signal.SIGKILL)
    assert process.stderr
    while b"the keeper process was killed" not in (line := process.stderr.readline()):
        assert line
    for number in signals:
        process.send_signal(number)
        if number == signal.SIGINT:
            while b"Ctrl-C" not in (line := process.stderr.readline()) and b"running" not in line:
                assert line
    process.wait(timeout=120)
    assert not is_alive(job)


def test_a_keeper_that_a_job_stops_delays_nothing_but_jobs(program: Program) -> None:
    big = f": {'x' * 131_000} #: gpus=0\n"
    (program.directory / "jobs").write_text(f"echo $PPID > keeper; kill -STOP $PPID; exit 7 #: gpus=0\n{big * 40}")
    process = program.start("--gpus", "0", "--cpu-slots", "64", "jobs", stdin=subprocess.DEVNULL, env=UNMEASURED)
    keeper = keeper_of(program)
    until(lambda: "\nState:\tT" in Path(f"/proc/{keeper}/status").read_text())
    try:
        said = program.run("status", timeout=60)
        assert said.returncode == 0, said.stderr
        assert b"running" in said.stdout
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert process.stderr
    assert b"40 succeeded, 1 failed" in process.stderr.read().splitlines()[-1]
    assert process.wait(timeout=120) == 1


def test_a_scheduler_that_is_stopped_learns_how_its_jobs_have_ended(
    program: Program, pids: Callable[[str], int]
) -> None:
    process = program.start("--gpus", "0", "--joblog", "log.tsv", env=UNMEASURED)
    left = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' & until [ -e go ]; do sleep 0.02; done; exit 7"
    program.feed(process, f"{left}\nexit 8\n")
    daemon = pids("daemon")
    process.send_signal(signal.SIGSTOP)
    try:
        (program.directory / "go").touch()
        until(lambda: not is_alive(daemon), "its keeper ends what it left behind")
    finally:
        process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=120) == 1
    rows = (program.directory / "log.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[6] for row in rows] == ["7", "8"]


def test_a_keeper_that_is_alone_records_an_end_only_once_nothing_is_left(
    program: Program, pids: Callable[[str], int]
) -> None:
    process = program.start("--gpus", "0", env=UNMEASURED)
    stubborn = "setsid sh -c 'trap : TERM; echo $$ > daemon; while :; do sleep 0.05; done' &"
    program.feed(process, f"{HOLD} & {stubborn} wait %1; exit 7\n")
    daemon, keeper = pids("daemon"), keeper_of(program)
    process.kill()
    process.wait()
    [journal] = (program.directory / "state").rglob("*.jsonl")
    until(lambda: "keeper alone" in journal.read_text())
    (program.directory / "go").touch()
    while is_alive(daemon):
        assert '"job exited"' not in journal.read_text() or not is_alive(daemon)
    until(lambda: not is_alive(keeper))
    assert journal.read_text().count('"job exited"') == 1
    assert '"status":1792' in journal.read_text()


# Its own end.

KEEPER = """
import os
from simple_gpu_scheduler.keeper.connection import pair, receive_short, send
from simple_gpu_scheduler.keeper.messages import AttemptEnded, Finish, Letter, Ready, Serve, Start, decode, encode
from simple_gpu_scheduler.keeper.process import Keeper
from simple_gpu_scheduler.system import processes
from simple_gpu_scheduler.system.threads import start_thread

processes.adopt_orphans()
scheduler, keeper = pair()
files = [os.open(".", os.O_PATH), os.open("journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)]
send(scheduler, encode(Letter(1, 0, Serve(os.getppid(), b"run"))), files)
"""


def keeper_ends_silently(program: Program, script: str) -> None:
    """It ends when its scheduler tells it to, which is in the journal: so nothing is to be recorded."""
    done = subprocess.run([sys.executable, "-c", KEEPER + script], cwd=program.directory, timeout=120, check=False)
    assert done.returncode == 0
    assert (program.directory / "journal").read_text() == ""


def test_a_keeper_that_is_told_of_the_end_does_not_take_it_for_a_death(program: Program) -> None:
    keeper_ends_silently(
        program,
        """
def end():
    send(scheduler, encode(Letter(2, 0, Start(b"1.1", (b"/bin/true",), (b"SGS_TREE=/run.1.1",)))))
    while not isinstance((letter := decode(receive_short(scheduler))).message, AttemptEnded):
        pass
    send(scheduler, encode(Letter(3, letter.number, Finish())))
    scheduler.close()
obey = Keeper._obey
def obey_late(self, letter, files):
    while isinstance(letter.message, Finish) and len(os.listdir("/proc/self/task")) > 2:
        pass  # the other thread that listens learns meanwhile that nobody speaks any more
    obey(self, letter, files)
Keeper._obey = obey_late
start_thread(end)
Keeper(keeper, []).serve()
""",
    )


def test_a_keeper_hears_of_the_end_though_its_scheduler_had_not_read_everything(program: Program) -> None:
    keeper_ends_silently(
        program,
        """
send(keeper, encode(Letter(1, 0, Ready())))
send(scheduler, encode(Letter(2, 0, Finish())))
scheduler.close()
Keeper._tell = lambda self, message: 0  # to say something may fail in place of the next reading
subject = Keeper(keeper, [])
subject._journal = files[1]
subject.serve()
""",
    )
