"""Real signals to the real program, and real processes that would run on after their job."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, UNMEASURED, Program, has_text, is_alive, until
from tests.support.sharing import ALONE

Pids = Callable[[str], int]


def finish(process: "subprocess.Popen[bytes]") -> str:
    """Wait for its end; its stderr."""
    return process.communicate(timeout=120)[1].decode()


def test_the_first_ctrl_c_lets_running_jobs_finish(program: Program, pids: Pids) -> None:
    process = program.start("--gpus", "0")
    program.feed(process, "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; touch done\ntouch second\n")
    pids("pid")
    process.send_signal(signal.SIGINT)
    assert process.stderr
    while b"Ctrl-C" not in (line := process.stderr.readline()):
        assert line
    assert line == b"Ctrl-C: stopping; no new jobs, waiting for 1 running job (Ctrl-C again to end it)\n"
    (program.directory / "go").touch()
    assert "1 succeeded, 0 failed, 0 timed out, 1 not started" in finish(process)
    assert process.returncode == 130
    assert (program.directory / "done").exists()
    assert not (program.directory / "second").exists()


def test_no_signal_is_lost_when_two_come_together(program: Program, pids: Pids) -> None:
    for number in range(12):
        process = program.start("--gpus", "0-3", env=UNMEASURED)
        program.feed(process, "exec sleep 1000\n" * 3 + f"echo $$ > pid{number}; exec sleep 1000\n")
        pids(f"pid{number}")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        finish(process)
        assert process.returncode in (130, 143)


def test_a_job_is_asked_once_to_end(program: Program, pids: Pids) -> None:
    """Its shell ends at once, its program takes its time; a second TERM would tell it that there is none."""
    trap = (
        "trap 'echo x >> terms' TERM; echo $$ > pid; while [ ! -s terms ]; do sleep 0.01; done; sleep 0.3 & wait; wait"
    )
    (program.directory / "program").write_text(trap)
    process = program.start("--gpus", "0", "--timeout", "3")
    program.feed(process, "sh program; true\n")
    pids("pid")
    assert "1 timed out" in finish(process)
    assert (program.directory / "terms").read_text() == "x\n"


def test_a_daemon_has_its_own_grace_period_when_its_job_had_to_be_killed(program: Program, pids: Pids) -> None:
    daemon = "trap 'touch termed; exit' TERM; echo $$ > daemon; while :; do sleep 0.05; done"
    (program.directory / "daemon.sh").write_text(daemon)
    process = program.start("--gpus", "0", "--timeout", "3", "--grace", "3")
    stubborn = "while [ ! -s daemon ]; do sleep 0.01; done; trap '' TERM; while :; do sleep 0.05; done"
    program.feed(process, f"setsid sh daemon.sh & {stubborn}\n")
    left = pids("daemon")
    assert "1 timed out" in finish(process)
    assert (program.directory / "termed").exists()
    assert not is_alive(left)


def test_the_second_ctrl_c_sends_term_and_the_third_kills(program: Program, pids: Pids) -> None:
    process = program.start("--gpus", "0", "--grace", "1000")
    program.feed(process, "trap 'touch termed' TERM; echo $$ > pid; while :; do sleep 0.01; done\n")
    job = pids("pid")
    process.send_signal(signal.SIGINT)
    assert process.stderr
    while b"Ctrl-C" not in (
        line := process.stderr.readline()
    ):  # or the second might come before it has taken the first
        assert line
    process.send_signal(signal.SIGINT)
    until((program.directory / "termed").exists)
    assert is_alive(job)
    process.send_signal(signal.SIGINT)
    until(lambda: not is_alive(job))
    finish(process)
    assert process.returncode == 130


def test_term_ends_what_runs_after_a_grace_period(program: Program, pids: Pids) -> None:
    process = program.start("--gpus", "0 1", "--grace", "2")
    program.feed(
        process, "trap '' TERM; echo $$ > a; while :; do sleep 0.01; done\necho $$ > b; exec sleep 1000\ntrue\n"
    )
    jobs = [pids("a"), pids("b")]
    process.terminate()
    err = finish(process)
    assert process.returncode == 143
    assert not any(map(is_alive, jobs))
    assert "SIGTERM: stopping; no new jobs, ending 2 running jobs" in err
    assert err.count("was interrupted after ") == 2
    assert "was killed" not in err
    assert "0 succeeded, 0 failed, 0 timed out, 1 not started, 2 interrupted" in err


def test_term_twice_at_once_is_one_and_a_later_one_kills(program: Program, pids: Pids) -> None:
    """The command `timeout` sends it to us, and then to our process group."""
    process = program.start("--gpus", "0", "--grace", "1000")
    program.feed(process, "trap 'touch termed' TERM; echo $$ > pid; while :; do sleep 0.01; done\n")
    job = pids("pid")
    process.terminate()
    until((program.directory / "termed").exists)
    process.terminate()
    until(lambda: not is_alive(job) or process.terminate())
    err = finish(process)
    assert process.returncode == 143
    assert err.count("killing 1 running job") == 1
    assert err.count("ending 1 running job") == 1


@pytest.mark.parametrize(("at_once", "said"), [(1000, b"the summary\n"), (0, b"")])
def test_after_the_run_a_repeated_term_ends_the_program_only_if_it_is_another_one(at_once: int, said: bytes) -> None:
    """Otherwise the second TERM of `timeout` would take the summary away."""
    script = f"""if True:
        import os, queue, signal, sys
        from simple_gpu_scheduler.system import signals
        signals.AT_ONCE = {at_once}
        inbox = queue.Queue()
        with signals.signals_to(inbox.put):
            os.kill(os.getpid(), signal.SIGTERM)
            inbox.get()
        os.kill(os.getpid(), signal.SIGTERM)
        print("the summary")
    """
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, env=UNMEASURED)
    assert (done.stdout, done.stderr) == (said, b"")
    assert done.returncode == (0 if said else -signal.SIGTERM)


def test_hangup_does_not_end_the_run(program: Program, pids: Pids) -> None:
    process = program.start("--gpus", "0")
    program.feed(process, "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done\ntouch second\n")
    pids("pid")
    process.send_signal(signal.SIGHUP)
    (program.directory / "go").touch()
    assert "2 succeeded" in finish(process)
    assert process.returncode == 0


def test_jobs_that_start_after_the_terminal_is_gone_print_to_logs(program: Program) -> None:
    (program.directory / "jobs.txt").write_text(
        "echo one; while [ ! -e go ]; do sleep 0.01; done\n"
        "python3 -c \"print('two', flush=True)\" && touch second\n"  # Python fails if it cannot print
        "python3 -c \"import sys; print('three', file=sys.stderr, flush=True)\" && touch third\n"
    )
    ours, its = os.openpty()
    argv = ["setsid", "--ctty", *SCHEDULER, *ALONE, "jobs.txt"]
    process = subprocess.Popen(argv, cwd=program.directory, stdin=its, stdout=its, stderr=its, env=UNMEASURED)
    os.close(its)
    os.set_blocking(ours, False)
    until(lambda: b"one" in read_all(ours), "the first job prints")
    os.close(ours)  # as a dropped ssh connection does
    (program.directory / "go").touch()
    process.wait(timeout=120)
    assert [(program.directory / name).exists() for name in ("second", "third")] == [True, True]
    shown = [program.run("logs", job).stdout for job in ("2", "3")]
    assert [b"two" in shown[0], b"three" in shown[1]] == [True, True], shown


def read_all(fd: int) -> bytes:
    """What is there now."""
    with suppress(BlockingIOError):
        return os.read(fd, 65536)
    return b""


@pytest.mark.usefixtures("idle_gpus")
def test_usr1_prints_what_runs_and_what_waits(program: Program, pids: Pids) -> None:
    process = program.start("--gpus", "0")
    program.feed(process, "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done\ntrue\ntrue\n")
    pids("pid")
    process.send_signal(signal.SIGUSR1)
    assert process.stderr
    assert process.stderr.readline().startswith(b"Processing command")
    assert re.fullmatch(rb"running on gpu 0 for \d\.\d s: job 1 \(line 1\): echo .*\n", process.stderr.readline())
    assert process.stderr.readline() == b"1 running, 2 waiting\n"
    (program.directory / "go").touch()
    finish(process)
    assert process.returncode == 0


def test_a_timed_out_job_is_ended_with_all_it_started(program: Program, pids: Pids) -> None:
    job = (
        "sh -c 'echo $$ > child; sleep 1000' & setsid sh -c 'echo $$ > daemon; exec sleep 1000' & echo $$ > main; wait"
    )
    process = program.start("--gpus", "0", "--timeout", "3", "--grace", "0.5")
    program.feed(process, f"{job}\n")
    everyone = [pids(name) for name in ("main", "child", "daemon")]
    err = finish(process)
    assert "timed out after" in err
    assert process.returncode == 1
    assert not any(map(is_alive, everyone))


@pytest.mark.parametrize(
    "leave",
    [
        "sleep 1000 & echo $! > left",
        "setsid sh -c 'echo $$ > left; exec sleep 1000' & true",
        "(setsid sh -c 'echo $$ > left; exec sleep 1000' &); true",
        "setsid sh -c 'trap \"\" TERM; echo $$ > left; while :; do sleep 0.05; done' & true",
        "env -i setsid sh -c 'echo $$ > left; exec sleep 1000' & true",
    ],
)
def test_what_a_job_leaves_behind_is_gone_before_the_next_has_the_gpu(program: Program, pids: Pids, leave: str) -> None:
    check = "while [ ! -s left ]; do sleep 0.01; done; kill -0 $(cat left) 2>/dev/null && touch still_there"
    process = program.start("--gpus", "0", "--grace", "0.5")
    program.feed(process, f"{leave}; while [ ! -s left ]; do sleep 0.01; done\n{check}; true\n")
    left = pids("left")
    err = finish(process)
    assert "2 succeeded" in err
    assert re.search(r"job 1 \(line 1\) left (a process|\d+ processes) running, which (was|were) ended", err)
    assert not (program.directory / "still_there").exists()
    assert not is_alive(left)


def test_a_daemon_of_a_running_job_is_spared_while_others_end(program: Program, pids: Pids) -> None:
    daemonise = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' &"
    first = f"{daemonise} while [ ! -e go ]; do sleep 0.01; done; kill -0 $(cat daemon)"
    process = program.start("--gpus", "0 1", "--grace", "0.5")
    waits = "while [ ! -s daemon ]; do sleep 0.01; done"
    program.feed(process, f"{first}\n{waits}\n" + "sleep 1000 & true\n" * 3 + "touch go\n")
    daemon = pids("daemon")
    assert "6 succeeded" in finish(process)
    assert not is_alive(daemon)


def test_orphans_that_end_by_themselves_are_reaped_when_a_job_ends(program: Program) -> None:
    process = program.start("--gpus", "0 1")
    assert process.stdin
    orphans = "for i in 1 2 3 4 5; do (sh -c 'echo $$ >> orphans' &) ; done; while [ ! -e go ]; do sleep 0.01; done\n"
    process.stdin.write(orphans.encode())
    process.stdin.flush()
    path = program.directory / "orphans"
    until(lambda: path.exists() and len(path.read_text().splitlines()) == 5)

    def all_are_reaped() -> bool:
        process.stdin.write(b"true\n")
        process.stdin.flush()
        return not any(Path(f"/proc/{pid}").exists() for pid in path.read_text().split())

    until(all_are_reaped)
    (program.directory / "go").touch()
    program.feed(process, "")
    finish(process)
    assert process.returncode == 0


def test_when_the_scheduler_is_killed_its_jobs_run_on(program: Program, pids: Pids) -> None:
    process = program.start("--gpus", "0", env=UNMEASURED)
    program.feed(process, "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; touch done\n")
    job = pids("pid")
    process.kill()
    process.wait()
    assert is_alive(job)
    (program.directory / "go").touch()
    until((program.directory / "done").exists)


def test_a_closed_stderr_loses_no_job_and_no_exit_code(program: Program) -> None:
    command = " ".join([*SCHEDULER, "--gpus", "0", "--joblog", "log"])
    for closed in ("2>&-", "2>&- >&- <in", "2>/dev/full", "2>&1 >/dev/null | true"):
        (program.directory / "in").write_text("touch ran\nfalse\n")
        script = f"set -o pipefail; {command} <in {closed}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=program.directory, capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 1, closed
        assert len((program.directory / "log").read_text().splitlines()) == 3
        (program.directory / "ran").unlink()


def test_closed_streams_are_no_error(program: Program) -> None:
    command = " ".join([*SCHEDULER, "--gpus", "0"])
    done = subprocess.run(["sh", "-c", f"{command} <&-"], cwd=program.directory, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_full_pipe_does_not_stop_the_jobs(program: Program) -> None:
    """Stderr has no reader, and 2,000 lines are more than a pipe holds."""
    process = program.start("--gpus", "0-3", "--joblog", "log")
    program.feed(process, "true\n" * 2000 + "touch done\n")
    until(has_text(program.directory / "log", "touch done"))
    err = finish(process)
    assert err.count("Processing command") == 2001
    assert "2001 succeeded" in err
    assert process.returncode == 0


def test_a_stopped_terminal_does_not_stop_the_jobs(program: Program) -> None:
    master, slave = pty.openpty()
    process = program.start("--gpus", "0-3", "--joblog", "log", stderr=slave)
    os.close(slave)
    program.feed(process, "true\n" * 3000 + "touch done\n")
    until(has_text(program.directory / "log", "touch done"))
    shown = b""
    while b"3001 succeeded" not in shown:
        shown += os.read(master, 65536)
    process.wait()
    assert shown.count(b"Processing command") == 3001
    os.close(master)


def test_a_terminal_that_went_away_does_not_stop_the_jobs(program: Program) -> None:
    master, slave = pty.openpty()
    process = program.start("--gpus", "0", stderr=slave)
    os.close(slave)
    os.close(master)
    program.feed(process, "true\n" * 20 + "touch done\n")
    process.wait(timeout=120)
    assert process.returncode == 0
    assert (program.directory / "done").exists()


def test_on_a_terminal_a_message_says_what_is_expected(program: Program) -> None:
    master, slave = pty.openpty()
    process = program.start("--gpus", "0", stdin=slave)
    os.close(slave)
    assert process.stderr
    assert process.stderr.readline() == b"reading commands from the terminal, one per line; Ctrl-D ends the input\n"
    os.write(master, b"echo typed\n")
    assert process.stdout
    assert process.stdout.readline() == b"typed\n"
    os.write(master, b"\x04")
    assert process.wait(timeout=120) == 0
    os.close(master)


def test_a_named_pipe_is_a_persistent_queue(program: Program) -> None:
    fifo = program.directory / "gpu.fifo"
    os.mkfifo(fifo)
    with os.fdopen(os.open(fifo, os.O_RDWR)) as stdin:
        process = program.start("--gpus", "0", stdin=stdin)
        assert process.stderr
        assert process.stderr.readline().startswith(b"the named pipe is held open for more commands")
    for number in range(3):
        subprocess.run(["sh", "-c", f"echo 'echo {number}' > {fifo}"], check=True, timeout=120)
        assert process.stdout
        assert process.stdout.readline() == b"%d\n" % number
    process.send_signal(signal.SIGINT)
    finish(process)
    assert process.returncode == 130


def test_a_named_pipe_ends_with_its_writer_when_asked_to(program: Program) -> None:
    fifo = program.directory / "gpu.fifo"
    os.mkfifo(fifo)
    command = f"{' '.join([*SCHEDULER, '--gpus', '0', '--no-follow'])} < {fifo}"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as process:
        fifo.write_text("echo one\n")
        assert process.communicate(timeout=120)[0] == b"one\n"
        assert process.returncode == 0


def test_a_line_is_run_as_soon_as_it_is_whole(program: Program) -> None:
    process = program.start("--gpus", "0")
    assert process.stdin
    assert process.stdout
    for number in range(3):
        process.stdin.write(b"echo %d" % number)
        process.stdin.flush()
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"%d\n" % number
    program.feed(process, "")
    finish(process)


def test_very_many_lines_take_little_memory(program: Program) -> None:
    (program.directory / "jobs").write_text("true\n" * 200_000)
    process = program.start("--gpus", "0-3", "--dry-run", "jobs", stdout=subprocess.DEVNULL, env=UNMEASURED)
    peak = 0
    while process.poll() is None:
        found = re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        peak = int(found[0]) if found else peak
        time.sleep(0.05)
    assert process.returncode == 0
    assert 0 < peak < 60_000


@pytest.mark.parametrize(("options", "most"), [(["--no-journal"], 200_000), ([], 5_000_000)])
def test_reading_ahead_has_a_bound(program: Program, options: list[str], most: int) -> None:
    process = program.start("--gpus", "0", "--policy", "fifo", "--quiet", *options)
    assert process.stdin
    chunk = b"true\n" * 10_000

    def resident() -> int:
        return int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[0])

    process.stdin.write(b"touch started; while [ ! -e go ]; do sleep 0.05; done\n")
    process.stdin.flush()
    until((program.directory / "started").exists)
    os.set_blocking(process.stdin.fileno(), False)
    taken, end = 0, time.monotonic() + 2
    while time.monotonic() < end:  # until it reads no more: the reading ahead has a bound
        try:
            taken += os.write(process.stdin.fileno(), chunk)
            end = time.monotonic() + 2
        except BlockingIOError:
            time.sleep(0.01)
    assert taken < most
    assert resident() < 60_000
    process.send_signal(signal.SIGTERM)
    process.stdin.close()
    process.stdin = None
    finish(process)
