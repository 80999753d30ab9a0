"""Persistent queues: named pipes and growing files, with the real program, and writers that die or come again."""

import os
import random
import resource
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, UNMEASURED, Program, until
from tests.support.processes import children_of, of_threads
from tests.support.sharing import as_user, needs_users

SUBMIT = [*SCHEDULER, "submit"]
HELD = "the named pipe is held open for more commands until the run is stopped"
FOLLOWED = "the file is followed for more commands until the run is stopped"
BASIC = ("--gpus", "0", "--cpu-slots", "4")
LONG = 100_000
Popen = subprocess.Popen[bytes]


def line(word: str, before: str = "") -> str:
    """A line that writes a word when it runs; it needs no GPU."""
    return f"{before}echo {word} >> ran   #: gpus=0\n"


class Queue:
    """A scheduler that reads a queue, what its jobs wrote, and what it said."""

    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.directory = program.directory
        self.path = self.directory / name
        self._errors = 0

    def start(self, *args: str, name: str | None = None, **settings) -> Popen:
        """Follow it, until it is said that it is held open or followed; further arguments come first."""
        process = self.start_unheard(*args, "--follow", name or self.path.name, **settings)
        self.is_read(process)
        return process

    def start_unheard(self, *args: str, **settings) -> Popen:
        self._errors += 1
        error = self.directory / f"errors-{self._errors}"
        settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "env": UNMEASURED} | settings
        with error.open("wb") as file:
            return self.program.start(*BASIC, *args, stderr=file, **settings)

    def is_read(self, process: Popen) -> None:
        ended = lambda: process.poll() is not None  # noqa: E731
        until(lambda: HELD in self.said or FOLLOWED in self.said or ended(), "it is read")
        assert not ended(), self.said

    @property
    def said(self) -> str:
        """By the scheduler that was started last."""
        return (self.directory / f"errors-{self._errors}").read_text()

    @property
    def ran(self) -> list[str]:
        path = self.directory / "ran"
        return path.read_text().split() if path.exists() else []

    def has_run(self, *words: str, seconds: float = 120) -> None:
        """Each of these, and nothing else, as often as it stands here."""
        what = lambda: f"{dict(Counter(words) - Counter(self.ran))} are missing: {self.said[-2000:]}"  # noqa: E731
        end = time.monotonic() + seconds
        while len(self.ran) < len(words):
            assert time.monotonic() < end, what()
            time.sleep(0.01)
        assert sorted(self.ran) == sorted(words)

    def write(self, text: str) -> None:
        """As a shell's `>>` does, waiting for no reader."""
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o644)
        try:
            assert os.write(fd, text.encode()) == len(text.encode())
        finally:
            os.close(fd)

    def submit(self, *args: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """`submit` with these arguments, in the scheduler's directory."""
        return subprocess.run(
            [*SUBMIT, *args], input=stdin, cwd=self.directory, capture_output=True, check=False, timeout=120
        )


def kill(process: Popen) -> None:
    """SIGKILL."""
    process.kill()
    process.wait(timeout=120)


def terminate(process: Popen) -> None:
    """SIGTERM."""
    process.terminate()
    assert process.wait(timeout=120) == 128 + signal.SIGTERM


@pytest.fixture
def fifo(program: Program) -> Queue:
    return Queue(program, "gpu.fifo")


@pytest.fixture
def growing(program: Program) -> Queue:
    queue = Queue(program, "gpu.txt")
    queue.path.touch()
    return queue


class TestNamedPipe:
    def test_on_stdin_it_is_held_open_for_any_number_of_writers_and_one_line_says_so(self, fifo: Queue) -> None:
        os.mkfifo(fifo.path)
        command = " ".join([*SCHEDULER, *BASIC])
        error = fifo.directory / "errors-0"
        shell = subprocess.Popen(
            ["sh", "-c", f"exec {command} < gpu.fifo 2> errors-0"], cwd=fifo.directory, env=UNMEASURED
        )
        try:
            for number in range(5):
                subprocess.run(["sh", "-c", f"echo 'echo {number} >> ran #: gpus=0' > {fifo.path}"], check=True)
            fifo.has_run(*map(str, range(5)))
            writers = [
                subprocess.Popen(["sh", "-c", f"echo 'echo {number} >> ran #: gpus=0' > {fifo.path}"])
                for number in range(5, 25)
            ]
            assert [writer.wait(timeout=120) for writer in writers] == [0] * 20
            fifo.has_run(*map(str, range(25)))
            assert shell.poll() is None
            assert error.read_text().count(HELD) == 1
        finally:
            shell.terminate()
            shell.wait(timeout=120)

    def test_a_line_without_a_newline_is_a_job_at_once_and_is_not_continued_by_the_next_writer(
        self, fifo: Queue
    ) -> None:
        process = fifo.start()
        fifo.write(line("half").rstrip("\n"))
        fifo.has_run("half", seconds=60)
        fifo.write(line("whole"))
        fifo.has_run("half", "whole")
        said = "a writer of the named pipe left its last line without a newline; that line is a job of its own\n"
        terminate(process)
        assert fifo.said.count(said) == 1

    def test_follow_makes_it_for_its_owner_alone(self, fifo: Queue) -> None:
        fifo.start(umask=0)
        assert fifo.path.is_fifo()
        assert fifo.path.stat().st_mode & 0o777 == 0o600
        fifo.write(line("one"))
        fifo.has_run("one")

    def test_follow_says_that_it_made_a_pipe_and_makes_none_of_a_mistyped_name(self, fifo: Queue) -> None:
        done = fifo.program.run(*BASIC, "--follow", "typo.txt", stdin=b"")
        assert done.returncode == 2
        assert b"--follow typo.txt: it does not exist; create it, or add --make-fifo for a named pipe" in done.stderr
        assert not (fifo.directory / "typo.txt").exists()
        terminate(fifo.start())
        assert fifo.said.count("created the named pipe gpu.fifo\n") == 1
        terminate(fifo.start())
        assert "made" not in fifo.said
        fifo.start("--make-fifo", name="queue")
        assert (fifo.directory / "queue").is_fifo()
        assert "created the named pipe queue\n" in fifo.said

    def test_follow_and_no_follow_exclude_each_other_and_make_fifo_is_for_follow(self, fifo: Queue) -> None:
        for args, words in (
            (("--follow", "gpu.fifo", "--no-follow"), b"--follow and --no-follow exclude each other"),
            (("--make-fifo", "gpu.txt"), b"--make-fifo requires --follow"),
            (("--follow", "gpu.fifo", "--follow", "a.txt"), b"--follow may be given only once"),
        ):
            done = fifo.program.run(*BASIC, *args, stdin=b"")
            assert (done.returncode, words in done.stderr) == (2, True)
        assert not fifo.path.exists()

    def test_submit_finds_the_queue_of_the_active_run(self, fifo: Queue) -> None:
        fifo.start()
        done = fifo.submit("--", "sh", "-c", "echo $0 >> ran", "a b")
        assert done.returncode == 0
        assert done.stderr.decode().startswith(f"submitted 1 job to {fifo.path}")  # a busy machine numbers it later
        until(lambda: fifo.ran == ["a", "b"])

    def test_submit_fails_at_once_without_a_reader(self, fifo: Queue) -> None:
        terminate(fifo.start())
        done = fifo.submit("--to", "gpu.fifo", "echo x")
        assert done.returncode == 2
        assert b"no scheduler is reading the named pipe gpu.fifo" in done.stderr

    def test_lines_of_100_kb_by_several_submits_are_never_mixed(self, fifo: Queue) -> None:
        fifo.start()
        script = fifo.directory / "check"
        script.write_text('test ${#2} = 100000 && test -z "$(echo "$2" | tr -d "$1")" && echo "$1" >> ran\n')
        texts = [
            "".join(f"sh ./check {letter} {letter * LONG} #: gpus=0\n" for _ in range(4)).encode() for letter in "abc"
        ]
        submits = [
            subprocess.Popen([*SUBMIT, "-q", "--to", "gpu.fifo"], cwd=fifo.directory, stdin=subprocess.PIPE)
            for _ in texts
        ]
        for process, text in zip(submits, texts, strict=True):
            threading.Thread(target=process.communicate, args=(text,)).start()
        assert [process.wait(timeout=120) for process in submits] == [0, 0, 0]
        fifo.has_run(*"aaaabbbbcccc")

    def test_a_partial_line_waits_for_its_end(self, fifo: Queue) -> None:
        fifo.start()
        writer = os.open(fifo.path, os.O_WRONLY)
        os.write(writer, b"echo on")
        time.sleep(0.3)
        assert fifo.ran == []
        os.write(writer, b"e >> ran \\\n")
        time.sleep(0.1)
        assert fifo.ran == []
        os.write(writer, b" #: gpus=0\n")
        os.close(writer)
        fifo.has_run("one")

    def test_jobs_may_end_in_nul_and_have_several_lines(self, fifo: Queue) -> None:
        fifo.start("--null")
        with fifo.path.open("wb", buffering=0) as writer:
            writer.write(b"echo one >> ran\necho two >> ran   #: gpus=0\0echo thr")
            fifo.has_run("one", "two")
            writer.write(b"ee >> ran   #: gpus=0\0echo four >> ran   #: gpus=0")
        fifo.has_run("one", "two", "three", "four")
        fifo.write("echo five >> ran   #: gpus=0\0")
        fifo.has_run("one", "two", "three", "four", "five")

    def test_with_20000_jobs_waiting_a_writer_does_not_wait(self, fifo: Queue) -> None:
        process = fifo.start("--cpu-slots", "1")
        fifo.write(line("first", "sleep 1000; "))
        text = "".join(f"true {number}   #: gpus=0\n" for number in range(20_000)).encode()
        with fifo.path.open("wb") as writer:
            writer.write(text)
        subprocess.run(["sh", "-c", f"echo true > {fifo.path}"], check=True, timeout=120)
        assert process.poll() is None

    @pytest.mark.parametrize("journal", [True, False])
    def test_an_endless_writer_fills_neither_disk_nor_memory(self, fifo: Queue, journal: bool) -> None:
        args = () if journal else ("--no-journal",)
        process = fifo.start(*args)
        with fifo.path.open("wb") as out:
            writer = subprocess.Popen(["yes", "sleep 600"], stdout=out)
        try:
            written = lambda: int(Path(f"/proc/{writer.pid}/io").read_text().split()[3])  # noqa: E731
            until(lambda: (before := written()) and not time.sleep(0.3) and before == written(), "the writer waits")
            spools = lambda: list((fifo.directory / "state").rglob("*.input-*"))  # noqa: E731
            until(lambda: len(spools()) == journal)
            assert all(spool.stat().st_blocks * 512 < 12 * 1024 * 1024 for spool in spools())
            status = Path(f"/proc/{process.pid}/status").read_text()
            assert int(status.partition("VmRSS:")[2].split()[0]) < 100 * 1024
        finally:
            writer.kill()
            writer.wait()

    def test_one_that_is_deleted_and_made_again_is_another_and_the_old_is_kept(self, fifo: Queue) -> None:
        fifo.start()
        fifo.write(line("one"))
        fifo.has_run("one")
        fifo.path.unlink()
        os.mkfifo(fifo.path)
        done = fifo.submit("--to", "gpu.fifo", "echo lost >> ran")
        assert (done.returncode, b"no scheduler is reading" in done.stderr) == (2, True)

    @pytest.mark.open_to_others
    def test_one_that_may_be_read_and_not_written_to(self, fifo: Queue) -> None:
        os.mkfifo(fifo.path)
        fifo.path.chmod(0o644)
        other = fifo.directory / "other"
        other.mkdir()
        os.chown(other, 65534, 65534)
        environment = UNMEASURED | {"XDG_STATE_HOME": str(other), "SGS_LEASE_DIR": str(other / "leases")}
        needs_users()
        as_other = as_user(65534)
        settings = {"cwd": other, "env": environment, "capture_output": True, "timeout": 30}
        refused = subprocess.run([*as_other, *SCHEDULER, *BASIC, "--follow", fifo.path], check=False, **settings)
        assert refused.returncode == 2
        assert (
            b"cannot hold the named pipe open for its writers: Permission denied; give yourself permission"
            in refused.stderr
        )
        assert not list(other.rglob("*.jsonl"))  # a run that was refused before it began is none
        keeper = os.open(fifo.path, os.O_RDWR)
        os.write(keeper, b"echo one >> ran #: gpus=0\n")
        command = [*as_other, *SCHEDULER, *BASIC, "--no-follow", fifo.path]
        with (fifo.directory / "said").open("wb") as error:
            process = subprocess.Popen(command, cwd=other, env=environment, stderr=error)
        until((other / "ran").exists, "it runs")
        os.close(keeper)
        assert process.wait(timeout=120) == 0

    def test_memory_stays_small_with_many_lines(self, fifo: Queue) -> None:
        with (fifo.directory / "shown").open("wb") as shown:
            process = fifo.start_unheard("--dry-run", "--follow", "gpu.fifo", stdout=shown)
        until(fifo.path.exists)
        with fifo.path.open("wb") as writer:
            writer.write(b"true #: gpus=0\n" * 50_000 + b"true last #: gpus=0\n")
        until(lambda: "true last" in (fifo.directory / "shown").read_text()[-1000:])
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert int(status.partition("VmHWM:")[2].split()[0]) < 60 * 1024


class TestNoFollow:
    def test_it_ends_with_the_input(self, fifo: Queue) -> None:
        os.mkfifo(fifo.path)
        process = fifo.start_unheard("--no-follow", "gpu.fifo")
        with fifo.path.open("wb", buffering=0) as writer:
            writer.write(line("one").encode())
            fifo.has_run("one")
            assert process.poll() is None
            writer.write(line("two").encode())
        assert process.wait(timeout=120) == 0
        fifo.has_run("one", "two")
        assert HELD not in fifo.said

    @pytest.mark.parametrize("journal", [True, False])
    def test_what_a_late_writer_could_write_is_run(self, fifo: Queue, journal: bool) -> None:
        os.mkfifo(fifo.path)
        process = fifo.start_unheard(*(() if journal else ("--no-journal",)), "--no-follow", "gpu.fifo")
        fifo_fd = os.open(fifo.path, os.O_WRONLY)
        os.write(fifo_fd, line("one", "until test -e go; do sleep 0.02; done; ").encode())
        os.close(fifo_fd)
        time.sleep(0.2)
        fifo.write(line("two"))
        fifo.has_run("two")
        fifo.write(line("three"))
        fifo.has_run("two", "three")
        (fifo.directory / "go").touch()
        assert process.wait(timeout=120) == 0
        fifo.has_run("one", "two", "three")

    @pytest.mark.parametrize("journal", [True, False])
    def test_a_write_that_succeeds_is_never_lost_at_hundreds_of_moments(self, fifo: Queue, journal: bool) -> None:
        os.mkfifo(fifo.path)
        chance = random.Random(7 + journal)
        written: list[str] = []
        args = ("--no-follow", "gpu.fifo") if journal else ("--no-journal", "--no-follow", "gpu.fifo")
        for run in range(8):
            process = fifo.start_unheard(*args)
            fd = os.open(fifo.path, os.O_WRONLY)
            os.write(fd, line(f"{run}").encode())
            os.close(fd)
            written.append(f"{run}")
            for number in range(40):
                try:
                    fifo.write(line(f"{run}.{number}"))
                except OSError:
                    break
                written.append(f"{run}.{number}")
                time.sleep(chance.choice([0, 0.001, 0.003, 0.01, 0.03]))
            assert process.wait(timeout=120) == 0, fifo.said
            fifo.has_run(*written)


class TestGrowingFile:
    def test_lines_are_run_as_they_come_and_partial_ones_wait(self, growing: Queue) -> None:
        growing.write(line("one") + "echo tw")
        growing.start()
        growing.has_run("one")
        growing.write("o >> ran  #: gpus=0\n")
        growing.has_run("one", "two")
        growing.write("echo three >> ran \\\n")
        time.sleep(0.2)
        growing.has_run("one", "two")
        growing.write("  #: gpus=0\n")
        growing.has_run("one", "two", "three")

    def test_truncation_and_rotation_lose_and_repeat_nothing(self, growing: Queue) -> None:
        growing.start()
        growing.write(line("one"))
        growing.has_run("one")
        os.truncate(growing.path, 0)
        growing.write(line("2"))
        growing.has_run("one", "2")
        growing.path.rename(growing.path.with_name("gpu.txt.1"))
        with growing.path.with_name("gpu.txt.1").open("a") as file:
            file.write(line("three"))
        growing.write(line("four"))
        growing.has_run("one", "2", "three", "four")

    def test_a_second_scheduler_is_refused_while_the_first_runs(self, growing: Queue) -> None:
        first = growing.start()
        done = growing.program.run("--gpus", "1", "--follow", "gpu.txt")
        assert done.returncode == 2
        text = done.stderr.decode()
        assert "already follows it; add jobs with: simple_gpu_scheduler submit --to gpu.txt" in text
        assert len(text.splitlines()) == 1
        assert first.poll() is None

    def test_the_file_is_named_where_something_else_took_its_place(self, growing: Queue) -> None:
        process = growing.start()
        growing.path.unlink()
        growing.path.mkdir()
        assert process.wait(timeout=60) == 1
        assert f"reading {growing.path} failed: it is no longer a regular file" in growing.said

    def test_submit_to_a_growing_file(self, growing: Queue) -> None:
        growing.start()
        assert growing.submit(stdin=line("one").encode() + line("two").encode()).returncode == 0
        growing.has_run("one", "two")

    def test_jobs_may_end_in_nul(self, growing: Queue) -> None:
        process = growing.start("--null")
        growing.write("echo one >> ran\necho two >> ran   #: gpus=0\0echo thr")
        growing.has_run("one", "two")
        kill(process)
        growing.start("--null")
        growing.write("ee >> ran   #: gpus=0\0")
        growing.has_run("one", "two", "three")


def replace(path: Path, *words: str) -> None:
    """As an editor saves a file."""
    new = path.with_name(".new")
    new.write_text("".join(line(word) for word in words))
    new.rename(path)


def rewrite(path: Path, *words: str) -> None:
    """As other editors save a file, and as `>` in a shell writes it."""
    path.write_text("".join(line(word) for word in words))


class Watched:
    """A growing file whose follower runs all the time, or is killed before each change and started again after it."""

    def __init__(self, queue: Queue, again: tuple[str, ...] | None) -> None:
        self.queue = queue
        self._again = again
        self._process = queue.start()
        self._heard = ""

    def change(self, change: Callable[..., object], *words: str) -> None:
        if self._again:
            kill(self._process)
            self._heard += self.queue.said
        change(self.queue.path, *words)
        if self._again:
            self._process = self.queue.start_unheard(*self._again)
            until(lambda: "resuming run" in self.queue.said)

    def says(self, sentence: str) -> None:
        until(lambda: sentence in self._heard + self.queue.said, f"{sentence}, not {self.queue.said}")

    @property
    def is_restarted(self) -> bool:
        return bool(self._again)

    @property
    def heard(self) -> str:
        return self._heard + self.queue.said


@pytest.fixture(params=[None, ("--follow", "gpu.txt"), ("--resume",)], ids=["alive", "restarted", "resumed"])
def watched(growing: Queue, request: pytest.FixtureRequest) -> Watched:
    return Watched(growing, request.param)


class TestOneRuleForAChangedFile:
    """What is appended is run. Otherwise: what the file held when it was last read is not run again, the rest is."""

    def test_deleting_what_is_done_runs_nothing_again(self, watched: Watched, growing: Queue) -> None:
        growing.write("".join(line(str(number)) for number in range(1, 6)))
        growing.has_run(*"12345")
        watched.change(lambda path: subprocess.run(["sed", "-i", "1,2d", path], check=True))
        watched.says("gpu.txt was replaced; 3 lines in it were read before and are not run again; to run a line again")
        growing.write(line("6"))
        growing.has_run(*"123456")

    @pytest.mark.parametrize("change", [replace, rewrite])
    def test_inserted_and_changed_lines_run_and_the_others_do_not(self, watched, growing, change) -> None:
        growing.write(line("a") + line("b") + line("c"))
        growing.has_run(*"abc")
        watched.change(change, "new", "c", "B", "a", "a")
        growing.has_run(*"abc", "new", "B", "a")
        watched.says("2 lines in it were read before and are not run again")

    def test_rotation_to_rising_names_runs_each_line_once(self, watched: Watched, growing: Queue) -> None:
        growing.write(line("a"))
        growing.has_run("a")
        for number, word in enumerate("bcd", start=1):
            watched.change(lambda path, number=number: path.rename(path.with_name(f"gpu.txt.{number}")))
            growing.write(line(word))
            growing.has_run(*"abcd"[: number + 1])
        assert "not run again" not in watched.heard

    @pytest.mark.parametrize("change", [replace, rewrite])
    def test_the_same_lines_in_a_new_file_are_named_and_submit_runs_one_again(self, watched, growing, change) -> None:
        growing.write(line("eval") + line("x"))
        growing.has_run("eval", "x")
        watched.change(change, "eval")
        watched.says("1 line in it was read before and is not run again; to run a line again, use `submit`")
        assert growing.submit("--to", "gpu.txt", "echo eval >> ran   #: gpus=0").returncode == 0
        growing.has_run("eval", "x", "eval")

    def test_a_line_that_was_gone_when_the_file_was_read_runs_again(self, watched: Watched, growing: Queue) -> None:
        growing.write(line("eval"))
        growing.has_run("eval")
        watched.change(lambda path: os.truncate(path, 0))
        self._is_settled(growing)
        growing.write(line("eval"))
        growing.has_run("eval", "eval")
        assert "not run again" not in watched.heard

    @staticmethod
    def _is_settled(growing: Queue) -> None:
        journal = next(growing.program.directory.rglob("*.jsonl"), None)
        assert journal
        until(lambda: '"holds":[]' in journal.read_text(), "it is recorded that the file holds nothing")

    def test_half_a_line_that_was_rewritten_is_not_run(self, watched: Watched, growing: Queue) -> None:
        """As of a script that was interrupted while it wrote the file, and started again."""
        growing.write(line("a") + "echo b >> ran; rm -rf /tmp/x")
        growing.has_run("a")
        watched.change(rewrite, "new", "a", "c")
        growing.has_run("a", "new", "c")
        if not watched.is_restarted:
            watched.says("that line is not run unless the file still holds it: echo b >> ran; rm -rf /tmp/x")

    def test_the_last_line_of_a_file_that_is_replaced_needs_no_newline(self, watched: Watched, growing: Queue) -> None:
        growing.write(line("a") + line("b").rstrip("\n"))
        growing.has_run("a")
        watched.change(lambda path: path.rename(path.with_name("gpu.txt.1")))
        growing.write(line("c"))
        growing.has_run("a", "b", "c")

    def test_a_last_line_without_a_newline_runs_once_however_often_the_file_is_replaced(self, watched, growing) -> None:
        growing.write(line("a") + line("b").rstrip("\n"))
        growing.has_run("a")
        for number, (old, new) in enumerate(["ax", "xy", "yz"], start=1):
            sed = ["sed", "-i", f"s/o {old}/o {new}/"]
            watched.change(lambda path, sed=sed: subprocess.run([*sed, path], check=True))
            journal = next(growing.program.directory.rglob("*.jsonl"))
            until(lambda number=number, journal=journal: journal.read_text().count('"holds":') == number)
        growing.write("\n" + line("c"))
        growing.has_run(*"axyzbc")

    def test_a_refused_line_runs_when_its_cause_in_another_line_is_corrected(self, watched, growing) -> None:
        one, two = "echo one >> ran\n", "echo two >> ran   #: gpus=0 after=big\n"
        growing.write(f"#: gpus=x\n{one}{two}")
        watched.says("line 3: not started: after=big: no earlier job has that name")
        watched.change(lambda path: path.write_text(f"#: gpus=x\n{two}{one}\n"))
        watched.says("gpu.txt was rewritten; 2 lines in it were read before and are not run again")
        watched.change(lambda path: path.write_text(f"#: gpus=0\n{one}true   #: name=big\n{two}"))
        growing.has_run("one", "two", seconds=20)
        assert watched.heard.count("after=big") == 1

    def test_a_second_change_is_compared_with_the_first(self, watched: Watched, growing: Queue) -> None:
        growing.write(line("a") + line("b"))
        growing.has_run(*"ab")
        watched.change(replace, "b", "c")
        growing.has_run(*"abc")
        watched.says("1 line in it was read before and is not run again")
        watched.change(rewrite, "c", "d", "b", "e")
        growing.has_run(*"abcde")
        watched.says("2 lines in it were read before and are not run again")


ENDS: Sequence[Callable[[Popen], None]] = (kill, terminate)
AGAIN = [("--follow", "gpu.txt"), ("--resume",)]


class TestRestart:
    @pytest.mark.parametrize("end", ENDS)
    @pytest.mark.parametrize("again", AGAIN, ids=["follow", "resume"])
    def test_a_followed_file_is_resumed(self, growing: Queue, end, again) -> None:
        growing.write(line("one") + "#: gpus=0\n" + "echo two >> ran #: name=b\necho hal")
        process = growing.start()
        growing.has_run("one", "two")
        end(process)
        growing.write("f >> ran\n")  # the default holds, or it would wait for a GPU that is taken
        growing.write("echo after >> ran #: after=b\n" + "echo bad #: gpsu=1\n")
        process = growing.start_unheard(*again)
        growing.has_run("one", "two", "half", "after")
        until(lambda: "line 6: not started" in growing.said and "gpsu" in growing.said)
        until(lambda: growing.said.count("on cpu") >= 2)  # what is said comes when stderr takes it, jobs may be faster
        assert growing.said.count("on cpu") == 2, growing.said
        terminate(process)

    def test_a_file_that_a_resumed_run_began_to_follow_is_resumed_however_many_runs_came_later(self, growing) -> None:
        growing.program.run(*BASIC, stdin="exit 1   #: gpus=0\n")
        growing.write(line("one"))
        process = growing.start("--resume")
        growing.has_run("one")
        terminate(process)
        for _ in range(2):
            growing.program.run(*BASIC, "--keep-runs", "1", stdin="true   #: gpus=0\n")
        growing.write(line("two"))
        process = growing.start()
        growing.has_run("one", "two")
        terminate(process)
        growing.has_run("one", "two")

    def test_a_followed_file_loses_and_repeats_nothing_at_many_kills(self, growing: Queue) -> None:
        chance = random.Random(3)
        words = [str(number) for number in range(300)]
        is_over = threading.Event()

        def write() -> None:
            for word in words:
                text = line(word)
                at = chance.randrange(len(text))
                growing.write(text[:at])
                growing.write(text[at:])
                time.sleep(0.01)
            is_over.set()

        process = growing.start()
        threading.Thread(target=write).start()
        kills = 0
        while not is_over.is_set() or kills <= 3:
            time.sleep(chance.uniform(0.02, 0.5))
            (kill if chance.random() < 0.8 else terminate)(process)
            kills += 1
            process = growing.start_unheard("--follow", "gpu.txt")
            until(lambda: "resuming run" in growing.said)
        growing.has_run(*words)
        terminate(process)

    def test_a_kill_before_anything_says_how_far_it_was_read_is_made_up_for(self, growing: Queue) -> None:
        growing.write(line("one") + "echo x #: gpsu=1\n")
        process = growing.start()
        growing.has_run("one")
        kill(process)
        (growing.directory / "ran").unlink()
        journal = next(growing.program.directory.rglob("*.jsonl"))
        before, refused, after = journal.read_text().partition('{"event":"line refused"')
        journal.write_text(before + refused + after.partition("\n")[0] + "\n")
        growing.start_unheard("--follow", "gpu.txt")
        growing.has_run("one")
        until(lambda: '"read up to"' in journal.read_text(), "how far it was read is recorded again")

    def test_a_fifo_and_what_was_in_it_are_resumed(self, fifo: Queue) -> None:
        process = fifo.start("--cpu-slots", "1")
        blocker = line("first", "until test -e go; do sleep 0.02; done; ")
        fifo.write(blocker + "#: gpus=0\n" + "".join(line(str(number)) for number in range(500)))
        until(lambda: "on cpu" in fifo.said)
        kill(process)
        fifo.start_unheard("--resume")
        until(lambda: HELD in fifo.said)
        (fifo.directory / "go").touch()
        fifo.write("echo last >> ran\n")
        fifo.has_run("first", *map(str, range(500)), "last")

    def test_half_a_line_of_a_cut_off_writer_is_dropped_loudly(self, fifo: Queue) -> None:
        process = fifo.start()
        writer = os.open(fifo.path, os.O_WRONLY)
        os.write(writer, line("one").encode() + b"echo half >> ran; rm -rf /tmp/x")
        fifo.has_run("one")
        kill(process)
        os.close(writer)
        fifo.start_unheard("--resume")
        until(lambda: HELD in fifo.said)
        fifo.write(line("two"))
        fifo.has_run("one", "two")
        cut_off = "was cut off when the scheduler ended, and is not run: echo half >> ran; rm -rf /tmp/x"
        until(lambda: cut_off in fifo.said)

    def test_after_ctrl_c_what_was_in_the_pipe_and_not_run_is_run_on_resume(self, fifo: Queue) -> None:
        process = fifo.start("--cpu-slots", "1")
        fifo.write(line("first", "sleep 0.5; ") + "".join(line(str(number)) for number in range(100)))
        until(lambda: "on cpu" in fifo.said)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 128 + signal.SIGINT
        fifo.has_run("first")
        fifo.start_unheard("--resume")
        fifo.has_run("first", *map(str, range(100)))

    def test_a_killed_schedulers_generator_notices_and_what_was_accepted_is_resumed(self, fifo: Queue) -> None:
        script = (
            "import sys, time\nn = 0\ntry:\n while True:\n"
            "  sys.stdout.write(f'echo {n} >> ran #: gpus=0\\n'); sys.stdout.flush(); n += 1; time.sleep(0.002)\n"
            "except BrokenPipeError:\n open('told', 'w').write(f'{n}\\n')\n"
        )
        generator = subprocess.Popen([sys.executable, "-c", script], cwd=fifo.directory, stdout=subprocess.PIPE)
        process = fifo.start_unheard(stdin=generator.stdout)
        assert generator.stdout
        generator.stdout.close()
        until(lambda: len(fifo.ran) > 20)
        kill(process)
        until((fifo.directory / "told").exists, "the generator has noticed")
        generator.wait(timeout=120)
        accepted = int((fifo.directory / "told").read_text())
        resumed = fifo.start_unheard("--resume")
        assert resumed.wait(timeout=120) == 0, fifo.said
        assert sorted(map(int, fifo.ran)) == list(range(accepted))

    @pytest.mark.parametrize("is_made_again", [False, True])
    def test_what_was_taken_of_a_fifo_that_is_gone_is_run(self, fifo: Queue, is_made_again: bool) -> None:
        process = fifo.start("--cpu-slots", "1")
        fifo.write(line("first", "until test -e go; do sleep 0.02; done; ") + line("two"))
        until(lambda: "on cpu" in fifo.said)
        kill(process)
        fifo.path.unlink()
        (fifo.directory / "go").touch()
        if is_made_again:
            os.mkfifo(fifo.path)
        process = fifo.start_unheard("--resume")
        if is_made_again:
            until(lambda: HELD in fifo.said)
            fifo.write(line("three"))
            fifo.has_run("first", "two", "three")
        else:
            assert process.wait(timeout=120) == 0
            fifo.has_run("first", "two")

    @pytest.mark.parametrize("again", AGAIN, ids=["follow", "resume"])
    def test_a_followed_file_that_is_not_there_is_waited_for(self, growing: Queue, again) -> None:
        growing.write(line("one"))
        process = growing.start()
        growing.has_run("one")
        kill(process)
        growing.path.rename(growing.path.with_name("gpu.txt.1"))
        growing.start_unheard(*again)
        until(lambda: FOLLOWED in growing.said)
        assert not growing.path.exists()
        growing.write(line("two"))
        growing.has_run("one", "two")

    def test_a_run_takes_no_second_queue_which_it_would_never_read(self, growing: Queue) -> None:
        growing.write(line("one"))
        process = growing.start()
        growing.has_run("one")
        kill(process)
        growing.path.with_name("other.txt").write_text(line("other"))
        for name in ("gpu.fifo", "other.fifo"):
            os.mkfifo(growing.path.with_name(name))
        for first, second, args in (
            ("gpu.txt", "other.txt", ("--resume", "--follow", "other.txt")),
            ("gpu.txt", "gpu.fifo", ("--resume", "gpu.fifo")),
            ("gpu.fifo", "other.fifo", (*BASIC, "gpu.fifo", "other.fifo")),
        ):
            done = growing.program.run(*args)
            assert done.returncode == 2
            assert f"{first} stays open, so {growing.directory}/{second} would never be read".encode() in done.stderr
        growing.start_unheard("--resume")
        growing.write(line("two"))
        growing.has_run("one", "two")

    @pytest.mark.parametrize("again", AGAIN, ids=["follow", "resume"])
    def test_a_followed_file_that_vanished_while_it_was_empty_is_waited_for(self, growing: Queue, again) -> None:
        growing.path.touch()
        kill(growing.start())
        growing.path.unlink()
        growing.start_unheard(*again)
        until(lambda: FOLLOWED in growing.said)
        growing.write(line("one"))
        growing.has_run("one")
        assert growing.said.count(FOLLOWED) == 1  # not once by what was typed, and once by what the run had

    def test_a_killed_keeper_loses_nothing_of_what_is_written(self, fifo: Queue) -> None:
        process = fifo.start()
        fifo.write(line("one"))
        fifo.has_run("one")
        (keeper,) = children_of(process.pid)
        os.kill(keeper, signal.SIGKILL)
        for number in range(20):
            fifo.write(line(str(number)))
        fifo.has_run("one", *map(str, range(20)))
        until(lambda: "the keeper process was killed" in fifo.said)  # what is said comes when stderr takes it

    def test_line_numbers_continue_after_a_restart(self, fifo: Queue) -> None:
        process = fifo.start()
        fifo.write(line("one") + "\n# nothing\n" + line("two"))
        fifo.has_run("one", "two")
        kill(process)
        fifo.start_unheard("--resume")
        until(lambda: HELD in fifo.said)
        fifo.write("echo bad #: gpsu=1\n")
        until(lambda: "gpsu" in fifo.said)
        assert "line 5" in fifo.said


class TestSeveralInputs:
    def test_files_and_a_fifo(self, fifo: Queue) -> None:
        (fifo.directory / "one.txt").write_text(line("one"))
        (fifo.directory / "two.txt").write_text(line("two"))
        fifo.start("one.txt", "two.txt")
        fifo.write(line("three"))
        fifo.has_run("one", "two", "three")

    @pytest.mark.parametrize("end", ENDS)
    def test_and_after_a_restart(self, fifo: Queue, end) -> None:
        (fifo.directory / "one.txt").write_text(line("one") * 2)
        process = fifo.start("one.txt")
        fifo.write(line("three"))
        fifo.has_run("one", "one", "three")
        end(process)
        with (fifo.directory / "one.txt").open("a") as file:
            file.write(line("two"))
        fifo.start_unheard("--resume", "--", "one.txt")
        until(lambda: HELD in fifo.said)
        fifo.write(line("three"))
        fifo.has_run("one", "one", "three", "two", "three")


def switches_of(pids: Sequence[int]) -> dict[str, list[str]]:
    """How often each thread was given the processor."""
    return {
        thread: [each for each in text.splitlines() if "ctxt_switches" in each]
        for pid in pids
        for thread, text in of_threads(pid, "status").items()
    }


@pytest.mark.parametrize("name", ["gpu.fifo", "gpu.txt"])
def test_idle_neither_scheduler_nor_keeper_use_the_processor(program: Program, name: str) -> None:
    queue = Queue(program, name)
    if name == "gpu.txt":
        queue.path.touch()
    process = queue.start()
    queue.write(line("one"))
    queue.has_run("one")
    pids = [process.pid, *children_of(process.pid)]
    assert len(pids) == 2, "the scheduler and its keeper"
    until(lambda: (before := switches_of(pids)) and not time.sleep(1) and before == switches_of(pids), "it sleeps")


def test_no_append_that_is_taken_back_is_taken_for_a_truncation(growing: Queue) -> None:
    growing.write(line("one"))
    growing.start()
    growing.has_run("one")
    limit = growing.path.stat().st_size + 1000
    text = line("never").encode() + b"# " + b"x" * 5000 + b"\n"
    for _ in range(10):
        done = subprocess.run(
            [*SUBMIT, "--to", "gpu.txt"],
            input=text,
            cwd=growing.directory,
            capture_output=True,
            check=False,
            preexec_fn=lambda: (
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
            ),
        )
        assert done.returncode == 1, done.stderr
    growing.write(line("two"))
    growing.has_run("one", "two")


def test_pipes_without_a_name_are_files_too(program: Program) -> None:
    """As a shell makes them of <(...)."""
    command = f"exec {shlex.join(SCHEDULER)} --gpus 0 -q /dev/stdin <(echo echo two; sleep 0.1; echo echo three)"
    done = subprocess.run(
        ["bash", "-c", command],
        input=b"echo one\n",
        cwd=program.directory,
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert done.stdout.split() == [b"one", b"two", b"three"]
