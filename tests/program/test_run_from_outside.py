"""Looking at a run, and speaking to it, from another terminal: the real program on both sides."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.remote import client
from simple_gpu_scheduler.remote.client import ask
from tests.conftest import SCHEDULER, UNMEASURED, Program, has_text, until
from tests.support.server import Loop
from tests.support.sharing import as_user, needs_users

pytestmark = pytest.mark.usefixtures("idle_gpus")


class Run:
    """A run with a queue that stays open, and what is said to it."""

    def __init__(self, program: Program, *args: str) -> None:
        self.program = program
        self.process = program.start("--gpus", "0", "--grace", "1", *args)
        self.journals = program.directory / "state" / "simple_gpu_scheduler" / "runs"
        until(self.sockets, "the run listens")
        self.id = self.sockets()[0].stem

    def sockets(self) -> list[Path]:
        return list(self.journals.glob("*.sock"))

    def write(self, lines: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(lines.encode())
        self.process.stdin.flush()

    def call(self, *args: str) -> "subprocess.CompletedProcess[bytes]":
        return self.program.run(*args)

    def status(self) -> dict:
        [report, *_] = json.loads(self.call("status", "--json").stdout)
        return report

    def runs(self, *numbers: int) -> bool:
        return [job["job"] for job in self.status()["running"]] == list(numbers)

    def end(self) -> int:
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
            self.process.stdin = None
        return self.process.wait(timeout=120)


@pytest.fixture
def run(program: Program) -> Run:
    return Run(program)


def test_status_tells_what_runs_and_in_json_all_of_it(run: Run) -> None:
    run.write("sleep 100 #: name=big time=1h\ntrue\nfalse #: gpus=0\n")
    until(lambda: run.status()["counts"]["failed"] == 1)
    report = run.status()
    [job] = report["running"]
    assert (job["job"], job["name"], job["gpus"], job["command"], job["estimate"]) == (
        1,
        "big",
        ["0"],
        "sleep 100",
        3600,
    )
    assert (report["run"], report["standing"], report["alive"]) == (run.id, "running", True)
    assert report["eta_unknown"] == "still reading the input"
    lines = run.call("status").stdout.decode().splitlines()
    assert re.match(rf"run {run.id}: running in .* for \d", lines[0])
    assert re.match(r'  gpu 0, \d.* of about 1 h: job 1 "big": sleep 100$', lines[1])
    assert lines[2:] == [
        "  1 running, 1 waiting, 0 succeeded, 1 failed, 0 not started",
        "  no ETA: still reading the input",
    ]


def test_status_shows_no_control_characters(run: Run) -> None:
    run.write("sleep 100; echo '\x1b[2J\u202e'\n")
    until(lambda: run.runs(1))
    shown = run.call("status").stdout.decode()
    assert "\\x1b[2J\\u202e" in shown
    assert "\x1b" not in shown


def test_a_stop_lets_what_runs_end_and_the_rest_can_be_resumed(run: Run) -> None:
    run.write("until [ -e go ]; do sleep 0.05; done\ntouch second\n")
    until(lambda: run.runs(1))
    done = run.call("stop")
    assert done.stdout.decode() == f"run {run.id}: stopping; no new jobs, waiting for 1 running job\n"
    assert run.status()["standing"] == "stopping"
    assert re.match(
        rf"run {run.id}: stopping, in .*, started \d.* ago$", run.call("status").stdout.decode().split("\n")[0]
    )
    (run.program.directory / "go").touch()
    assert run.process.wait(timeout=120) == 1
    assert not (run.program.directory / "second").exists()
    report = run.status()
    assert (report["alive"], report["standing"], report["code"]) == (False, "stopped", 1)
    assert (report["counts"]["succeeded"], report["counts"]["waiting"]) == (1, 1)
    assert run.sockets() == []


def test_a_stop_now_ends_what_runs(run: Run) -> None:
    run.write("sleep 100\n")
    until(lambda: run.runs(1))
    assert run.call("stop", "--now", run.id[:-2]).returncode == 0
    assert run.process.wait(timeout=120) == 1


def test_a_paused_run_starts_nothing_until_it_is_to_continue(run: Run) -> None:
    assert run.call("pause").returncode == 0
    run.write("touch first\n")
    until(lambda: run.status()["counts"]["waiting"] == 1)
    assert run.status()["standing"] == "paused"
    assert not (run.program.directory / "first").exists()
    assert run.call("continue").stdout.decode() == f"run {run.id}: continuing\n"
    until((run.program.directory / "first").exists)
    assert run.end() == 0
    journal = next(run.journals.glob("*.jsonl")).read_text()
    assert journal.index('"event":"paused"') < journal.index('"event":"continued"') < journal.index("job started")


def test_jobs_are_cancelled_by_number_and_by_name(run: Run) -> None:
    run.write("sleep 100 #: name=big retries=3\ntouch two\ntouch three #: name=three\ntouch four\n")
    until(lambda: run.runs(1) and run.status()["counts"]["waiting"] == 3)
    done = run.call("cancel", "2", "three", "9")
    assert done.stdout.decode().splitlines() == ["job 2: cancelled", "job 3: cancelled"]
    assert done.stderr.decode() == "job 9: there is no such job\n"
    assert done.returncode == 1
    assert run.call("cancel", "no-such").returncode == 2
    assert run.call("cancel", "big", "--run", run.id).stdout == b"job 1: cancelling\n"
    until((run.program.directory / "four").exists)
    assert run.end() == 1
    assert sorted(path.name for path in run.program.directory.iterdir() if path.name in ("two", "three")) == []
    counts = run.status()["counts"]
    assert (counts["cancelled"], counts["failed"], counts["succeeded"]) == (3, 0, 1)


def test_a_failed_job_is_retried_with_those_that_come_after_it(run: Run) -> None:
    run.write("test -e data #: name=prepare\ntouch trained #: after=prepare\n")
    until(lambda: run.status()["counts"]["not started"] == 1)
    (run.program.directory / "data").touch()
    done = run.call("retry", "prepare")
    assert done.stdout.decode().splitlines() == [
        "job 1: waiting again",
        "job 2: waiting again, since it depends on those jobs",
    ]
    until((run.program.directory / "trained").exists)
    assert run.end() == 0
    assert run.status()["standing"] == "finished"


def test_wait_sleeps_until_the_run_is_over_and_exits_as_it_did(run: Run, program: Program) -> None:
    run.write("until [ -e go ]; do sleep 0.05; done\nexit 3\n")
    until(lambda: run.runs(1))
    waiting = program.start("wait")
    inode = (run.journals / f"{run.id}.jsonl").stat().st_ino
    until(lambda: _is_waited_for(inode), "it sleeps in the kernel")
    (run.program.directory / "go").touch()
    assert run.end() == 1
    assert waiting.wait(timeout=120) == 1
    assert run.call("wait", run.id).returncode == 1


def _is_waited_for(inode: int) -> bool:
    locks = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and f":{inode} " in line for line in locks)


def test_a_run_that_was_killed_is_dead_and_not_running(run: Run, program: Program) -> None:
    run.write("echo $$ > pid; exec sleep 100\n")
    until(has_text(program.directory / "pid"))
    name = run.id
    waiting = program.start("wait", name)
    run.process.kill()
    run.process.wait()
    try:
        assert waiting.wait(timeout=120) == 1
        assert waiting.stderr
        assert (
            f"run {name} died; resume it with: simple_gpu_scheduler --resume {name}" in waiting.stderr.read().decode()
        )
        [dead] = json.loads(program.run("status", "--json").stdout)
        assert (dead["alive"], dead["standing"]) == (False, "died")
        assert [job["job"] for job in dead["running"]] == [1]
        shown = program.run("status").stdout.decode()
        assert f"; resume it with: simple_gpu_scheduler --resume {name}" in shown
        assert "  gpu 0, when it died: job 1: echo $$ > pid; exec sleep 100" in shown
        for command in (["stop"], ["pause"], ["continue"], ["cancel", "1", "--run"], ["retry", "1", "--run"]):
            done = program.run(*command, name)
            assert done.returncode == 2
            assert f"run {name} has died; resume it with: simple_gpu_scheduler --resume {name}" in done.stderr.decode()
    finally:
        os.kill(int((program.directory / "pid").read_text()), signal.SIGKILL)


def test_of_several_runs_that_live_one_has_to_be_named(run: Run, program: Program) -> None:
    other = program.start("--gpus", "1")
    until(lambda: len(run.sockets()) == 2)
    done = program.run("stop")
    assert done.returncode == 2
    assert b"2 runs are active" in done.stderr
    assert len(json.loads(program.run("status", "--json").stdout)) == 2
    for path in run.sockets():
        assert program.run("stop", path.stem).returncode == 0
    assert other.wait(timeout=120) == 0
    assert run.process.wait(timeout=120) == 0


def test_status_watches_until_the_run_is_over(run: Run, program: Program) -> None:
    run.write("sleep 100\n")
    until(lambda: run.runs(1))
    watching = program.start("status", "--watch", "--json")
    assert watching.stdout
    assert json.loads(watching.stdout.readline())[0]["alive"]
    run.call("stop", "--now")
    assert watching.wait(timeout=120) == 0
    assert not json.loads(watching.stdout.read().splitlines()[-1])[0]["alive"]


def test_without_any_run_status_says_so(program: Program) -> None:
    assert program.run("status").stdout == b"no runs yet\n"
    assert program.run("status", "--json").stdout == b"[]\n"
    assert program.run("stop").returncode == 2


# What jobs wrote.


class Written:
    """A run's journal, written and locked by the test, of a job with a log."""

    def __init__(self, directory: Path) -> None:
        self.log = directory / "1.log"
        self.run = "20260102-030405-abcdef"
        runs = directory / "state" / "simple_gpu_scheduler" / "runs"
        runs.mkdir(parents=True, mode=0o700)
        self.fd = files.create(str(runs / f"{self.run}.jsonl"))
        files.lock(self.fd, files.SCHEDULER)
        self.add(event="run began", run=self.run, version=1, host=os.uname().nodename)
        self.add(event="job read", job=1, line=1, command="train", name="big")

    def add(self, **record: object) -> None:
        os.write(self.fd, (json.dumps({"event": record.pop("event"), "at": 1.0, **record}) + "\n").encode())

    def start(self, attempt: int, log: str) -> None:
        self.add(event="job started", job=1, attempt=attempt, gpus=["0"], slots=[0], log=log)

    def end(self, attempt: int, *, final: bool) -> None:
        self.add(event="job ended", job=1, attempt=attempt, outcome="failed", code=1, started=1, runtime=1, final=final)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    written = Written(tmp_path)
    yield written
    os.close(written.fd)


def test_logs_prints_what_a_job_wrote_byte_by_byte(program: Program, written: Written) -> None:
    written.log.write_bytes(b"\xff epoch 1\r\x1b[1mepoch 2")
    written.start(1, str(written.log))
    assert program.run("logs", "1").stdout == b"\xff epoch 1\r\x1b[1mepoch 2"
    assert program.run("logs", "big", "--run", "20260102").stdout == b"\xff epoch 1\r\x1b[1mepoch 2"


def test_logs_follows_a_job_through_its_attempts_to_its_end(program: Program, written: Written) -> None:
    following = program.start("logs", "big", "-f")
    out: IO[bytes] = following.stdout  # type: ignore[assignment]
    written.log.write_text("one\n")
    written.start(1, str(written.log))
    assert out.readline() == b"one\n"
    with written.log.open("a") as log:
        log.write("two\n")
    assert out.readline() == b"two\n"
    with written.log.open("a") as log:
        log.write("rest\n")
    written.end(1, final=False)
    second = written.log.with_name("2.log")
    written.start(2, str(second))
    second.write_text("three\n")
    assert out.readline() == b"rest\n"
    assert out.readline() == b"three\n"
    with second.open("a") as log:
        log.write("four")
    written.end(2, final=True)
    assert out.read() == b"four"
    assert following.wait(timeout=120) == 0


def test_logs_follows_no_longer_than_the_run_is_active(program: Program, written: Written) -> None:
    written.log.write_text("one\n")
    written.start(1, str(written.log))
    following = program.start("logs", "1", "-f")
    assert following.stdout
    assert following.stderr
    assert following.stdout.readline() == b"one\n"
    os.close(written.fd)
    assert following.wait(timeout=120) == 0
    assert b"job 1 has not ended: run 20260102-030405-abcdef died" in following.stderr.read()
    written.fd = os.open(os.devnull, os.O_RDONLY)


def test_a_job_without_a_log_says_why_there_is_none(program: Program, written: Written) -> None:
    done = program.run("logs", "1")
    assert done.returncode == 2
    assert b"job 1 of run 20260102-030405-abcdef has not started, so it has no output" in done.stderr
    written.add(event="job started", job=1, attempt=1, gpus=["0"], slots=[0])
    for args in (["logs", "1"], ["logs", "1", "-f"]):
        done = program.run(*args)
        assert done.returncode == 2
        assert b"has no log: its output went to the run's own output" in done.stderr
    assert program.run("logs", "no-such").returncode == 2


def test_a_run_with_logs_shows_the_last_line_of_each_job(program: Program) -> None:
    run = Run(program, "--logs", "logs")
    run.write("printf 'start\\n\\033[1m10%%\\r20%%\\r'; sleep 100\n")
    until(lambda: run.runs(1) and run.status()["running"][0].get("last_line") == "20%")
    shown = program.run("logs", "1").stdout.splitlines(keepends=True)
    assert shown[2:] == [b"start\n", b"\033[1m10%\r", b"20%\r"]
    assert "      20%\n" in program.run("status").stdout.decode()
    run.call("stop", "--now")
    run.process.wait(timeout=120)


def test_a_last_line_without_an_end_is_cut_and_shows_no_control_characters(program: Program) -> None:
    run = Run(program, "--logs", "logs")
    run.write(
        "head -c 10000000 /dev/zero | tr '\\0' x; touch written; sleep 100\n"
        "printf '\\377\\376 \\033]0;title\\007\\033[2J \\342\\200\\256evil\\033[3'; sleep 100 #: gpus=0\n"
    )
    until(lambda: len(run.status()["running"]) == 2 and run.status()["running"][1].get("last_line"))
    until((program.directory / "written").exists)
    lines = run.call("status").stdout.decode().splitlines()
    assert f"      {'x' * 200}…" in lines
    assert "      \\xff\\xfe  \\u202eevil\\x1b[3" in lines
    run.call("stop", "--now")
    run.process.wait(timeout=120)


# Clients that ask in strange ways.


def connect(run: Run) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(120)
    fd = os.open(run.journals, os.O_PATH)
    connection.connect(f"/proc/self/fd/{fd}/{run.id}.sock")  # the path of a socket has at most 107 bytes
    os.close(fd)
    return connection


def test_300_may_ask_at_the_same_time(run: Run) -> None:
    script = (  # apart, since 300 threads at once are too much for what measures coverage
        "import sys; from concurrent.futures import ThreadPoolExecutor; "
        "from simple_gpu_scheduler.remote.client import ask\n"
        "with ThreadPoolExecutor(300) as threads:\n"
        "    answers = list(threads.map(lambda _: ask(sys.argv[1], {'do': 'status'}), range(300)))\n"
        "print({answer['run'] for answer in answers})"
    )
    command = [sys.executable, "-c", script, str(run.journals / f"{run.id}.jsonl")]
    done = subprocess.run(command, env=UNMEASURED, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == f"{{'{run.id}'}}\n"


def test_a_client_that_asks_in_halves_or_never_reads_blocks_no_other(run: Run) -> None:
    strange = [connect(run) for _ in range(60)]
    for connection in strange[:20]:
        connection.sendall(b'{"do":"sto')
    strange[20].setblocking(False)
    with suppress(BlockingIOError):  # it reads no answer, and so no more is taken of it
        while True:
            strange[20].send(b'{"do":"status"}\n' * 1000)
    with suppress(BrokenPipeError):
        strange[21].sendall(b"x" * 2 * 1024 * 1024)
    assert b"at most 1048576 bytes" in strange[21].recv(1000)
    assert run.status()["standing"] == "running"
    for connection in strange:
        connection.close()
    assert run.end() == 0


def test_a_socket_that_is_gone_stale_or_anothers_is_reported_and_the_run_is_still_shown(run: Run, monkeypatch) -> None:
    monkeypatch.chdir(run.journals)  # the path of a socket has at most 107 bytes
    path = Path(run.sockets()[0].name)
    kept = path.with_suffix(".kept")
    path.rename(kept)
    for make in (lambda: None, path.touch, lambda: bind(path).close()):
        make()
        done = run.call("stop")
        assert (done.returncode, done.stdout) == (2, b"")
        assert f"run {run.id} is active, but has no socket at" in done.stderr.decode()
        assert "has no socket at" in run.status()["problem"]
        path.unlink(missing_ok=True)
    with bind(path) as listener:
        listener.listen()
        for answer in (b"\x1b[2J\n", b"[]\n", b"\xff\n"):
            asking = run.program.start("stop")
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)
            assert asking.wait(timeout=120) == 2
            assert asking.stderr
            assert b"its answer is not a JSON object" in asking.stderr.read()
    kept.rename(path)
    assert run.call("stop").returncode == 0
    assert run.process.wait(timeout=120) == 0


def bind(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    return listener


@pytest.mark.open_to_others
def test_another_user_is_refused_even_where_the_directory_can_be_seen(run: Run) -> None:
    needs_users()
    run.write("sleep 100\n")
    until(lambda: run.runs(1))
    for directory in (run.journals, *run.journals.parents):
        if directory.is_relative_to(run.program.directory):
            directory.chmod(0o755)
    other = [*as_user(65534), *SCHEDULER]
    for command in (
        ["stop", run.id],
        ["cancel", "1", "--run", run.id],
        ["logs", "1", "--run", run.id],
        ["wait", run.id],
    ):
        done = subprocess.run([*other, *command], capture_output=True, check=False, timeout=120, cwd="/")
        assert (done.returncode, done.stdout) == (2, b""), done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert run.runs(1)
    run.call("stop", "--now")
    run.process.wait(timeout=120)


def test_what_a_suspended_run_did_not_answer_in_time_is_not_done_when_it_continues(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.write("false\nsleep 1000\necho three\n")
    until(lambda: run.status()["counts"]["failed"] == 1 and run.runs(2), "one failed, and one runs")
    os.kill(run.process.pid, signal.SIGSTOP)
    requests = [{"do": "retry", "jobs": [1]}, {"do": "cancel", "jobs": [3]}, {"do": "pause"}, {"do": "stop"}]
    monkeypatch.setattr(client, "_PATIENCE", 0.3)
    try:
        for request in requests:
            with pytest.raises(
                UserError, match=f"does not respond; if it is suspended .*, run `fg` .* `kill -CONT {run.process.pid}`"
            ):
                ask(str(run.journals / f"{run.id}.jsonl"), request)
    finally:
        os.kill(run.process.pid, signal.SIGCONT)
    status = run.status()
    assert (status["standing"], status["counts"]["cancelled"], status["counts"]["failed"]) == ("running", 0, 1)
    run.call("stop", "--now")
    assert run.process.wait(timeout=120) == 1


def test_what_a_run_answers_in_time_is_done(run: Run) -> None:
    os.kill(run.process.pid, signal.SIGSTOP)
    asking = run.program.start("pause", run.id)
    until(lambda: len(_connections(run)) > 1, "it has asked")
    os.kill(run.process.pid, signal.SIGCONT)
    assert asking.wait(timeout=120) == 0
    assert run.status()["standing"] == "paused"
    run.call("stop")
    assert run.process.wait(timeout=120) == 0


def test_a_client_that_waits_for_an_answer_when_the_run_ends_gets_one(run: Run) -> None:
    os.kill(run.process.pid, signal.SIGSTOP)
    asking = run.program.start("status", run.id)
    until(lambda: len(_connections(run)) > 1, "it has asked")
    run.process.kill()
    os.kill(run.process.pid, signal.SIGCONT)
    assert asking.wait(timeout=120) == 0
    assert asking.stdout
    assert b"died" in asking.stdout.read()


def _connections(run: Run) -> list[str]:
    return [line for line in Path("/proc/net/unix").read_text().splitlines() if run.id in line]


def test_a_watch_in_a_terminal_keeps_to_its_size_and_ends_with_ctrl_c(program: Program) -> None:
    run = Run(program, "--cpu-slots", "30")
    run.write("".join(f"sleep 100; : {'x' * 200} {number} #: gpus=0\n" for number in range(30)))
    until(lambda: len(run.status()["running"]) == 30)
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 50, 0, 0))
    watching = program.start(
        "status", "--watch", stdin=terminal, stdout=terminal, start_new_session=True,
        env=os.environ | {"TERM": "xterm"}, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(terminal)
    shown = b""
    while shown.count(b"\n") < 9:
        assert select.select([master], [], [], 120)[0]
        shown += os.read(master, 65536)
    assert shown.startswith(b"\x1b[H\x1b[2J")
    *lines, rest = shown.decode().removeprefix("\x1b[H\x1b[2J").split("\r\n")
    assert max(len(line) for line in lines) == 50
    assert (len(lines), rest) == (9, "")
    assert [line.split()[-1] for line in lines[1:]] == [str(number) for number in range(8)]  # what differs is not cut
    os.write(master, b"\x03")
    assert watching.wait(timeout=120) == 0
    os.close(master)
    run.call("stop", "--now")
    run.process.wait(timeout=120)


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    loop = Loop(tmp_path / "run.sock")
    yield loop
    loop.close()


@pytest.mark.open_to_others
@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_refused(loop: Loop) -> None:
    loop.path.chmod(0o666)
    script = (
        "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "print(s.makefile().readline())"
    )
    done = subprocess.run([sys.executable, "-c", script, str(loop.path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"error": "this run belongs to another user"}
    assert loop.asked.empty()


def test_the_run_is_a_word_or_an_option_of_every_command_and_not_two(run: Run) -> None:
    run.program.run("--gpus", "1", "-q", stdin="true\n")  # so that the run is not the newest of all
    for command, *options in (("status", "--json"), ("history", "--json"), ("report", "--json"), ("pause",)):
        for words in ((run.id,), ("--run", run.id), (run.id, "--run", run.id)):
            done = run.call(command, *options, *words)
            assert done.returncode == 0, done.stderr
            assert run.id.encode() in done.stdout or command == "history"
            assert command != "history" or done.stdout == b"[]\n"  # its jobs, of which there are none
    assert run.call("continue", "--run", run.id[:-1]).returncode == 0
    for command in ("status", "history", "report", "wait", "stop", "pause", "continue"):
        done = run.call(command, "--run", run.id, "202012")
        assert done.returncode == 2
        assert f"two runs are given, 202012 and --run {run.id}; choose one (see".encode() in done.stderr
    for words in (("status", ""), ("stop", "--run", ""), ("cancel", "1", "--run", ""), ("submit", "--run", "", "true")):
        done = run.call(*words)
        assert done.returncode == 2
        assert b"RUN is empty; is a shell variable unset? (see" in done.stderr
    run.write("true\n")
    until(lambda: run.call("logs", "1", "--run", run.id).returncode == 2)
    assert run.call("stop", "--run", run.id).returncode == 0
    code = run.process.wait(timeout=120)
    assert run.call("wait", "--run", run.id).returncode == code
