"""`simple_gpu_scheduler run`: one real command on a GPU that is free, in pipes and on a terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, Program, has_text, until
from tests.support.nvml import GIB, MIB, Process, StandIn, a_gpu

pytestmark = pytest.mark.usefixtures("idle_gpus")
Pids = Callable[[str], int]

WHICH = ("sh", "-c", "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER")
HOLD = "echo $$ > {0}; while [ ! -e end-{0} ]; do sleep 0.01; done"


def ends(program: Program, *args: str, **settings) -> tuple[int, str, str]:
    """Its exit code, what it wrote, and what it said."""
    done = program.run("run", *args, **settings)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def unmeasured() -> dict[str, str]:
    """For what a test kills: with its own leases, which `UNMEASURED` does not have."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


def is_free(program: Program, gpu: str = "0") -> bool:
    """Whether anybody could have this GPU now."""
    return ends(program, "--no-wait", "--gpus", gpu, "true")[0] == 0


@pytest.fixture
def hold(program: Program) -> Callable[[str], Callable[[], None]]:
    """Has another `run` lease a GPU; ends that."""

    def start(gpu: str) -> Callable[[], None]:
        process = program.start("run", "--gpus", gpu, "sh", "-c", HOLD.format(f"on-{gpu}"))
        until(has_text(program.directory / f"on-{gpu}"))

        def end() -> None:
            (program.directory / f"end-on-{gpu}").touch()
            process.communicate(timeout=120)

        return end

    return start


def waiting(program: Program, *args: str, **settings) -> "subprocess.Popen[bytes]":
    """A `run` that has said what it waits for."""
    process = program.start("run", *args, **settings)
    assert process.stderr
    assert process.stderr.readline().startswith(b"waiting: gpu ")
    return process


def test_it_waits_for_a_gpu_that_a_scheduler_has_leased(program: Program) -> None:
    scheduler = program.start("--gpus", "0")
    program.feed(scheduler, HOLD.format("job"))
    until(has_text(program.directory / "job"))
    process = program.start("run", "--gpus", "0", "--", *WHICH)
    assert process.stderr
    line = process.stderr.readline()
    assert re.fullmatch(rb"waiting: gpu 0: leased by \w+ \(pid \d+, job 1 of run \w+\) for \S+ s\n", line), line
    (program.directory / "end-job").touch()
    assert process.communicate(timeout=120) == (b"0 PCI_BUS_ID\n", b"")
    assert process.returncode == 0


def test_it_waits_for_a_gpu_that_a_process_uses(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0, used=GIB, processes=[Process(os.getpid(), GIB)])])
    process = program.start("run", "--free-for", "0", "--", *WHICH)
    assert process.stderr
    line = process.stderr.readline().decode()
    assert re.fullmatch(r"waiting: gpu 0: \w+ \S+ 1\.0 GiB for .* \(yours; to share the GPU: --share-with me\)\n", line)
    idle_gpus.show([a_gpu(0)])
    assert process.communicate(timeout=120) == (b"0 PCI_BUS_ID\n", b"")


def test_a_scheduler_that_waited_for_two_gpus_leaves_the_other_one_to_others(
    program: Program, pids: Pids, hold: Callable
) -> None:
    end_first, end_second = hold("0"), hold("1")
    process = waiting(program, "--gpus", "0", "1", "--", "sh", "-c", f"{HOLD.format('mine')}; {WHICH[2]}")
    end_first()
    pids("mine")
    end_second()
    until(lambda: is_free(program, "1"), "gpu 1 is free")
    (program.directory / "end-mine").touch()
    assert process.communicate(timeout=120)[0] == b"0 PCI_BUS_ID\n"


def test_several_gpus_are_had_all_or_none_and_wide_runs_do_not_block_each_other(program: Program, hold) -> None:
    assert ends(program, "-n", "2", *WHICH) == (0, "0,1 PCI_BUS_ID\n", "")
    end = hold("0")
    assert ends(program, "-n", "2", *WHICH) == (0, "1,2 PCI_BUS_ID\n", "")
    code, out, err = ends(program, "--no-wait", "-n", "2", "--gpus", "0", "1", "true")
    assert (code, out) == (75, "")
    assert re.fullmatch(
        r"fewer than 2 GPUs are free: gpu 0: leased by \w+ \(pid \d+, simple_gpu_scheduler run\) for \S+ s\n", err
    )
    assert is_free(program, "1")
    wide = [program.start("run", "-n", "2", "--gpus", *gpus, "--", "true") for gpus in ("01", "10", "01", "10")]
    end()
    assert [process.wait(timeout=120) for process in wide] == [0, 0, 0, 0]


def test_the_command_has_our_streams_and_its_exit_code_is_ours(program: Program) -> None:
    script = "cat; echo to stderr >&2; exit 7"
    assert ends(program, "sh", "-c", script, stdin="from stdin") == (7, "from stdin", "to stderr\n")
    assert ends(program, "sh", "-c", "kill -KILL $$") == (137, "", "")
    assert ends(program, "sh", "-c", "kill -TERM $$") == (143, "", "")


def test_streams_that_are_closed_and_more_open_files_reach_the_command_as_they_are(program: Program) -> None:
    def shell(redirection: str) -> tuple[int, bytes]:
        script = f"{' '.join(SCHEDULER)} run sh -c 'echo 3 >&3; cat; exit 7' 3>third {redirection}"
        done = subprocess.run(["sh", "-c", script], cwd=program.directory, capture_output=True, check=False)
        return done.returncode, done.stdout

    assert shell("<&-") == (7, b"")
    assert shell("<&- >&- 2>&-") == (7, b"")
    assert (program.directory / "third").read_text() == "3\n"


def test_without_patience_it_names_the_users_of_the_gpus(program: Program, hold: Callable, idle_gpus: StandIn) -> None:
    end = hold("0")
    leased = r"no GPU is free: gpu 0: leased by \w+ \(pid \d+, simple_gpu_scheduler run\) for \S+ s\n"
    code, _, err = ends(program, "--no-wait", "--gpus", "0", "touch", "started")
    assert code == 75
    assert re.fullmatch(leased, err)
    code, _, err = ends(program, "--wait", "0.3s", "--gpus", "0", "touch", "started")
    assert code == 124
    assert re.fullmatch(leased, err)
    end()
    idle_gpus.show([a_gpu(0, used=GIB, processes=[Process(os.getpid(), GIB)])])
    code, _, err = ends(program, "--no-wait", "touch", "started")
    assert code == 75
    assert re.fullmatch(r"no GPU is free: gpu 0: \w+ \S+ 1\.0 GiB for .*\n", err)
    assert ends(program, "--no-wait", "--ignore-occupancy", "true") == (0, "", "")
    assert not (program.directory / "started").exists()


def test_it_says_once_that_memory_decides_where_pids_cannot_be_seen(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0, used=MIB, processes=[Process(2**22 - 1, MIB)])])
    code, _, err = ends(program, "true")
    assert code == 0
    assert err.count("a GPU's used memory decides") == 1


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["--wait", "soon", "true"], 2, "'soon' is not a duration; write 90, 90s, 5m, 1h30m or 2d"),
        (["--wait", "2s", "--no-wait", "true"], 2, "--wait and --no-wait exclude each other"),
        (["-n", "9", "true"], 2, "-n 9: only 4 GPUs are available"),
        (["-n", "2", "--gpus", "3", "true"], 2, "-n 2: only 1 GPU is available"),
        (["-n", "0", "true"], 2, "0 is not in the range x>=1"),
        (["--gpus", "7", "true"], 2, "there is no GPU 7; there are 0 "),
        ([], 2, "Missing argument 'COMMAND...'"),
        (["--"], 2, "Missing argument 'COMMAND...'"),
        (["--", "no-such-command"], 127, "cannot start no-such-command: No such file or directory"),
        (
            ["--", "echo hi; echo ho"],
            127,
            "directory; to run a shell line: simple_gpu_scheduler run -- sh -c 'echo hi; echo ho'",
        ),
        (["--", "./plain"], 126, "cannot start ./plain: Permission denied"),
        (["--", "/"], 126, "cannot start /: Permission denied"),
    ],
)
def test_what_cannot_be_done_has_a_sentence(program: Program, args: list[str], code: int, sentence: str) -> None:
    (program.directory / "plain").write_text("#!/bin/sh\n")
    got, out, err = ends(program, *args)
    assert (got, out) == (code, "")
    assert sentence in err.splitlines()[-1]
    assert "Traceback" not in err
    assert is_free(program)


@pytest.mark.parametrize(
    "options", [["--gpus", "7"], ["--gpus", "0", "1"], ["--gpus=0,1"], ["--gpus"], ["-n", "--wait"]]
)
@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_options_of_the_command_are_not_taken_for_ours(program: Program, dashes: list[str], options: list[str]) -> None:
    shows = [sys.executable, "-c", "import sys; print(sys.argv[1:])"]
    words = [*options, "--", "--help"]
    assert ends(program, "--gpus", "2", *dashes, *shows, *words) == (0, f"{words}\n", "")


@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1", "USR2"])
def test_a_signal_to_it_alone_reaches_the_command(program: Program, pids: Pids, name: str) -> None:
    script = f"trap 'echo got {name}; exit 5' {name}; echo $$ > pid; while :; do sleep 0.01; done"
    process = program.start("run", "sh", "-c", script)
    pids("pid")
    process.send_signal(signal.Signals[f"SIG{name}"])
    assert process.communicate(timeout=120) == (f"got {name}\n".encode(), b"")
    assert process.returncode == 5


def test_no_signal_to_it_is_lost_on_the_way_to_the_command(program: Program, pids: Pids) -> None:
    counts = "".join(f"trap 'echo {name} >> came' {name}; " for name in ("USR1", "HUP", "TERM"))
    script = f"{counts} echo $$ > pid; while [ ! -e end ]; do sleep 0.01; done"
    process = program.start("run", "--", "sh", "-c", script, env=unmeasured())
    pids("pid")
    for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM):
        process.send_signal(number)
    until((program.directory / "came").exists, "one has come")
    until(lambda: len((program.directory / "came").read_text().split()) == 3, "all have come")
    (program.directory / "end").touch()
    assert process.wait(timeout=120) == 0


def test_a_signal_that_comes_as_soon_as_the_command_starts_reaches_it(program: Program) -> None:
    script = "trap 'exit 5' TERM; kill -TERM $PPID; for i in $(seq 100); do sleep 0.01; done"
    assert [ends(program, "sh", "-c", script, stdin="")[0] for _ in range(6)] == [5] * 6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_it_waits_ends_it_at_once(program: Program, hold: Callable, number: int) -> None:
    end = hold("0")
    process = waiting(program, "--gpus", "0", "touch", "started")
    process.send_signal(number)
    assert process.wait(timeout=120) == 128 + number
    end()
    assert is_free(program)
    assert not (program.directory / "started").exists()


@pytest.mark.parametrize("ignored", ["", "trap '' HUP;", "trap '' INT QUIT TERM;"])
def test_the_command_ignores_the_signals_that_its_user_ignores_and_no_more(program: Program, ignored: str) -> None:
    def mask(start: str) -> int:
        done = subprocess.run(
            ["sh", "-c", f"{ignored} exec {start} grep SigIgn /proc/self/status"], capture_output=True, check=True
        )
        return int(done.stdout.split()[1], 16) & 0x7FFFFFFF  # above are the C library's own

    assert mask(" ".join([*SCHEDULER, "run"])) == mask("")
    assert ends(program, "true")[0] == 0


def test_a_parent_that_ignores_its_children_takes_no_exit_code_away(program: Program) -> None:
    code = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", code, *SCHEDULER, "run", "sh", "-c", "true; exit 7"]
    assert subprocess.run(command, cwd=program.directory, check=False).returncode == 7


def test_what_the_command_leaves_running_is_ended(program: Program, pids: Pids) -> None:
    daemon = "setsid sh -c 'echo $$ > {0}; exec sleep 1000'"
    script = f"{daemon.format('one')} & (env -i {daemon.format('two')} &); while [ ! -s one -o ! -s two ]; do :; done"
    assert ends(program, "sh", "-c", f"{script}; exit 7", stdin="") == (7, "", "")
    assert not any(Path(f"/proc/{pids(name)}").exists() for name in ("one", "two"))


def test_when_it_is_killed_the_gpu_stays_leased_until_the_command_is_gone(program: Program, pids: Pids) -> None:
    process = program.start("run", "--gpus", "0", "sh", "-c", HOLD.format("pid"), env=unmeasured())
    pids("pid")
    process.kill()
    process.wait()
    assert not is_free(program)
    (program.directory / "end-pid").touch()
    until(lambda: is_free(program))


def test_the_gpu_is_free_right_after(program: Program) -> None:
    one = f"{' '.join(SCHEDULER)} run --no-wait --gpus 0"
    script = (
        f"{one} true && {one} sh -c 'exit 7' || {one} no-such-command || {one} sh -c 'sleep 1000 & true' && {one} true"
    )
    assert subprocess.run(["sh", "-c", script], cwd=program.directory, check=False, timeout=120).returncode == 0


def test_runs_and_schedulers_inside_each_other_do_not_wait_for_themselves(program: Program) -> None:
    us = " ".join(SCHEDULER)
    which = "echo $CUDA_VISIBLE_DEVICES"
    assert ends(program, "--gpus", "2", *SCHEDULER, "run", "--no-wait", *SCHEDULER, "run", "--no-wait", *WHICH) == (
        (0, "2 PCI_BUS_ID\n", "")
    )
    done = program.run("--gpus", "1", "-q", stdin=f"{us} run --no-wait -- sh -c '{which}'\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")
    inside = f"printf '%s\\n' '{which}' '{which}' | {us} -q; {us} run --no-wait -- {us} run --no-wait sh -c '{which}'"
    code, out, err = ends(program, "-n", "2", "--", "bash", "-c", inside)
    assert (code, sorted(out.split()), err) == (0, ["0", "0", "1"], "")


@pytest.mark.parametrize("name", ["run", "gpus"])
def test_a_file_that_is_called_as_a_command_is_readable_by_its_path(program: Program, name: str) -> None:
    (program.directory / name).write_text("echo from a file\n")
    assert program.run(f"./{name}", "--gpus", "0").stdout == b"from a file\n"
    assert program.run("--gpus", "0", "--", name).stdout == b"from a file\n"


class Terminal:
    """A program with a terminal of its own."""

    def __init__(self, directory: Path, *argv: str) -> None:
        self._master, slave = pty.openpty()
        self._shown = b""
        self.process = subprocess.Popen(
            argv,
            cwd=directory,
            env=os.environ | {"TERM": "dumb", "PS1": "> ", "HISTFILE": "/dev/null"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - we have no threads
        )
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def sees(self, text: str) -> None:
        """Wait until this is shown, behind what was seen before."""
        while text.encode() not in self._shown:
            assert select.select([self._master], [], [], 120)[0], (text, self._shown)
            self._shown += os.read(self._master, 65536)
        self._shown = self._shown.partition(text.encode())[2]

    def close(self) -> None:
        os.close(self._master)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    started: list[Terminal] = []

    def start(*argv: str) -> Terminal:
        started.append(Terminal(tmp_path, *argv))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_the_command_reads_what_is_typed_and_asks_the_terminal_for_a_password(terminal: Callable) -> None:
    code = "import getpass; print('line', input()); print('word', getpass.getpass('password? '))"
    term = terminal(*SCHEDULER, "run", sys.executable, "-c", code)
    term.type("typed\n")
    term.sees("line typed")
    term.sees("password? ")
    term.type("secret\n")
    term.sees("word secret")
    assert term.process.wait(timeout=120) == 0


@pytest.mark.parametrize(("trap", "code"), [("", 130), ("trap 'echo caught; exit 5' INT;", 5)])
def test_ctrl_c_reaches_the_command_and_its_exit_code_counts(terminal: Callable, trap: str, code: int) -> None:
    term = terminal(*SCHEDULER, "run", "sh", "-c", f"{trap} echo ready; while :; do sleep 0.05; done")
    term.sees("ready")
    term.type("\x03")
    assert term.process.wait(timeout=120) == code


def test_ctrl_z_suspends_it_and_fg_continues_it(terminal: Callable, program: Program) -> None:
    term = terminal("bash", "--norc", "--noprofile", "-i")
    term.type(f"{' '.join(SCHEDULER)} run --gpus 0 -- sh -c 'echo ready-$((1+1)); read x; echo got-$x; exit 5'\n")
    term.sees("ready-2")
    term.type("\x1a")
    term.sees("Stopped")
    assert not is_free(program)
    term.type("fg\n")
    term.sees("run --gpus 0")
    term.type("hello\n")
    term.sees("got-hello")
    term.type("echo code-$?\n")
    term.sees("code-5")
    assert is_free(program)


def test_an_interactive_shell_has_its_job_control(terminal: Callable) -> None:
    term = terminal(*SCHEDULER, "run", "--", "bash", "--norc", "--noprofile", "-i")
    term.type("echo on-$CUDA_VISIBLE_DEVICES; sh -c 'echo ready-$((1+1)); read x; echo got-$x'\n")
    term.sees("on-0")
    term.sees("ready-2")
    term.type("\x1a")
    term.sees("Stopped")
    term.type("fg\n")
    term.sees("read x")
    term.type("hello\n")
    term.sees("got-hello")
    term.type("exit 3\n")
    assert term.process.wait(timeout=120) == 3
