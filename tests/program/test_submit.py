"""`submit`: lines get whole into named pipes and files that a scheduler reads, or not at all, whatever others write."""

import fcntl
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from simple_gpu_scheduler.journal import files, records
from simple_gpu_scheduler.journal.read import read_records
from tests.conftest import UNMEASURED, Program, has_text, until

SUBMIT = [
    sys.executable,
    "-c",
    """import os, sys; from simple_gpu_scheduler.cli.call import call
from simple_gpu_scheduler.cli.main import _exit_with
from simple_gpu_scheduler.inputs import job_numbers; job_numbers.PATIENCE = float(os.environ.get('PATIENCE', 0))
from simple_gpu_scheduler.cli.commands.submit import submit_command as command
name = 'simple_gpu_scheduler submit'
_exit_with(name, lambda: call(command, sys.argv[1:], name))""",
]
LONG = 100_000


def patient(seconds: float = 60) -> dict[str, str]:
    """The environment of a `submit` that waits this long for numbers."""
    return {**os.environ, "PATIENCE": str(seconds)}


# Root may read and write everything, unless its capabilities are taken from it.
WITHOUT_POWERS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


class Submitters:
    """`submit` as a user runs it, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: list[subprocess.Popen[bytes]] = []

    def run(
        self, *args: str, stdin: bytes = b"", before: Sequence[str] = (), **settings
    ) -> "subprocess.CompletedProcess[bytes]":
        settings = {"cwd": self.directory, "timeout": 60, "capture_output": True} | settings
        return subprocess.run([*before, *SUBMIT, *args], input=stdin, check=False, **settings)

    def start(self, *args: str, text: bytes = b"", **settings) -> "subprocess.Popen[bytes]":
        """Start it, with these bytes on stdin; without any, stdin stays open and empty."""
        settings = {"cwd": self.directory, "stdin": subprocess.PIPE, "stderr": subprocess.PIPE} | settings
        path = self.directory / f"input-{len(self.started)}"
        path.write_bytes(text)
        with path.open("rb") as file:
            process = subprocess.Popen([*SUBMIT, *args], **settings | ({"stdin": file} if text else {}))
        self.started.append(process)
        return process

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stderr):
                if stream:
                    stream.close()


@pytest.fixture
def submit(tmp_path: Path) -> Iterator[Submitters]:
    submitters = Submitters(tmp_path)
    yield submitters
    submitters.close()


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[int]:
    """The reading end of a named pipe `queue`, non-blocking."""
    os.mkfifo(tmp_path / "queue")
    fd = os.open(tmp_path / "queue", os.O_RDONLY | os.O_NONBLOCK)
    yield fd
    if Path(f"/proc/self/fd/{fd}").exists():
        os.close(fd)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "queue"
    path.write_bytes(b"echo first\n")
    return path


def drain(fd: int, into: bytearray, size: int = 65_536) -> int:
    """Take what is in the pipe, at most so much; how much that was."""
    try:
        data = os.read(fd, size)
    except BlockingIOError:
        return 0
    into += data
    return len(data)


def said(process: "subprocess.Popen[bytes]") -> str:
    """The next line that it says."""
    assert process.stderr
    return process.stderr.readline().decode()


# ---- Named pipes


def test_long_lines_of_twenty_submitters_arrive_whole_and_in_order(submit: Submitters, fifo: int) -> None:
    def lines(writer: int) -> list[bytes]:
        return [b"echo %d %d %s" % (writer, number, bytes([97 + writer]) * LONG) for number in range(4)]

    for writer in range(20):
        submit.start("--to", "queue", text=b"\n".join(lines(writer)), env=UNMEASURED)
    taken = bytearray()
    while any(process.poll() is None for process in submit.started):
        select.select([fifo], [], [], 0.1)
        drain(fifo, taken, 20_000)
        time.sleep(0.0005)  # slower than they write
    while drain(fifo, taken):
        pass
    got = bytes(taken).split(b"\n")
    assert got.pop() == b""
    assert len(got) == 80
    for writer in range(20):
        assert [line for line in got if line.startswith(b"echo %d " % writer)] == lines(writer)
    assert [process.returncode for process in submit.started] == [0] * 20


def test_without_a_reader_it_says_so_before_it_reads_its_input(submit: Submitters, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "queue")
    process = submit.start("--to", "queue")
    assert process.wait(20) == 2
    assert "no scheduler is reading the named pipe queue; start `simple_gpu_scheduler < queue` first" in said(process)


def test_a_reader_that_leaves_is_reported_with_the_line_that_was_not_written(submit: Submitters, fifo: int) -> None:
    lines = [b"echo %02d %s" % (number, b"x" * LONG) for number in range(40)]
    process = submit.start("--to", "queue", text=b"# a remark\n" + b"\n".join(lines))
    taken = bytearray()
    until(lambda: drain(fifo, taken) and len(taken) > 2 * LONG, "some of it is read")
    os.close(fifo)
    assert process.wait(20) == 1
    words = said(process)
    assert "the scheduler reading queue is gone: line " in words
    number = int(words.partition(": line ")[2].split()[0])
    assert taken.count(b"\n") < number <= 41


def test_a_long_line_is_in_the_pipe_as_a_whole_before_it_is_read(submit: Submitters, fifo: int) -> None:
    line = b"echo " + b"x" * LONG
    assert submit.run("--to", "queue", stdin=line).returncode == 0
    taken = bytearray()
    while drain(fifo, taken):
        pass
    assert taken == line + b"\n"


def test_ctrl_c_in_the_middle_of_a_line_waits_for_its_end(submit: Submitters, fifo: int) -> None:
    process = submit.start("--to", "queue", text=(b"echo " + b"x" * LONG + b"\n") * 15)
    assert said(process).startswith("queue is full: its scheduler has enough jobs for now; waiting")
    process.send_signal(signal.SIGINT)
    taken = bytearray()
    until(lambda: not drain(fifo, taken) and process.poll() is not None, "it ends")
    while drain(fifo, taken):
        pass
    assert process.returncode == -signal.SIGINT
    assert taken.endswith(b"x\n")
    assert set(map(len, taken.splitlines())) == {LONG + 5}


def test_a_pipe_that_one_may_not_write_to_is_an_error(submit: Submitters, fifo: int, tmp_path: Path) -> None:
    assert os.fstat(fifo).st_ino == (tmp_path / "queue").stat().st_ino
    (tmp_path / "queue").chmod(0o400)
    done = submit.run("--to", "queue", "true", before=WITHOUT_POWERS, env=UNMEASURED)
    assert done.returncode == 2
    assert b": cannot write to queue: Permission denied; ask its owner for permission to write" in done.stderr


# ---- Files


def test_words_lines_and_stdin_are_appended_as_whole_lines(submit: Submitters, file: Path) -> None:
    done = submit.run("--to", "queue", "--", "python", "train.py", "--name", "a b", "#:", "-q", "\\")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"submitted 1 job to queue\n")
    done = submit.run("--to", "queue", "echo $HOME > a; b   #: gpus=2 name=x")
    assert done.returncode == 0
    done = submit.run(
        "--to", "queue", stdin=b"\xef\xbb\xbfa \\\n  b\n\n# remark\n \nc \xff #: time=5m\r\nd \\\\\n# e \\\nf"
    )
    assert (done.returncode, done.stderr) == (0, b"submitted 4 jobs to queue\n")
    assert file.read_bytes().splitlines(keepends=True) == [
        *(b"echo first\n", b"python train.py --name 'a b' '#:' -q '\\'\n", b"echo $HOME > a; b   #: gpus=2 name=x\n"),
        *(b"a \\\n", b"  b\n", b"# remark\n", b"c \xff #: time=5m\r\n", b"d \\\\\n", b"# e \\\n", b"f\n"),
    ]


@pytest.mark.parametrize(
    ("before", "between"),
    [
        (b"", b""),
        (b"\n", b""),
        (b"half", b"\n"),
        (b"a\nhalf \\", b"\n\n"),
        (b"half \\\r", b"\n\n"),
        (b"half \\\n", b"\n"),
        (b"half \\\r\n", b"\n"),
    ],
)
def test_a_line_that_another_writer_left_unfinished_is_ended_first(
    submit: Submitters, file: Path, before: bytes, between: bytes
) -> None:
    file.write_bytes(before)
    assert submit.run("--to", "queue", "-q", "true").stderr == b""
    assert file.read_bytes() == before + between + b"true\n"


def test_a_file_that_may_only_be_written_gets_lines_that_no_other_can_continue(submit: Submitters, file: Path) -> None:
    file.chmod(0o200)
    done = submit.run("--to", "queue", "true", before=WITHOUT_POWERS, env=UNMEASURED)
    assert done.returncode == 0
    assert file.read_bytes() == b"echo first\n\n\ntrue\n"


def test_a_full_disk_leaves_the_file_as_it_was(submit: Submitters, file: Path) -> None:
    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))

    lines = b"echo a line\n" * 10_000
    done = submit.run("--to", "queue", stdin=lines, preexec_fn=fill, env=UNMEASURED)
    assert done.returncode == 1
    assert done.stderr.endswith(b": cannot write to queue: File too large; nothing was submitted\n")
    assert file.read_bytes() == b"echo first\n"
    assert submit.run("--to", "queue", stdin=lines).returncode == 0
    assert file.read_bytes() == b"echo first\n" + lines


def test_a_symlink_is_followed_and_what_is_no_queue_is_refused(submit: Submitters, file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "directory").mkdir()
    assert submit.run("--to", "link", "true").returncode == 0
    assert file.read_bytes() == b"echo first\ntrue\n"
    for path, words in [
        ("directory", b": directory is not a queue; a queue is a named pipe"),
        ("/dev/null", b": /dev/null is not a queue; "),
        (
            "none",
            b": there is no none; start `simple_gpu_scheduler --follow none --make-fifo` first, or create the file",
        ),
        ("no \x1b[2J", b": there is no no \\x1b[2J; start `simple_gpu_scheduler --follow 'no \\x1b[2J' --make-fifo`"),
    ]:
        done = submit.run("--to", path, "true")
        assert done.returncode == 2
        assert words in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_another_writer_is_waited_for_and_a_file_that_it_replaced_is_not_written(
    submit: Submitters, file: Path, is_replaced: bool
) -> None:
    fd = os.open(file, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    process = submit.start("--to", "queue", "true")
    assert said(process) == "waiting for another writer, which has locked queue\n"
    old = file
    if is_replaced:
        old = file.rename(file.with_name("old"))
        file.write_bytes(b"")
    assert old.read_bytes() == b"echo first\n"
    os.close(fd)
    assert process.wait(20) == 0
    assert (old.read_bytes(), file.read_bytes().splitlines()[-1]) == (
        b"echo first\n" if is_replaced else b"echo first\ntrue\n",
        b"true",
    )


# ---- What is wrong with the lines


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "nothing to submit"),
        (b" \n\t\r\n", "nothing to submit"),
        (b"# a remark\n", "nothing to submit"),
        (b"true\na\0b\n", "line 2: it contains a NUL byte"),
        (b"true\n\nfalse \\", "line 3: it ends in a backslash"),
        (b"a \\\nb \\\n", "line 1: it ends in a backslash"),
        (b"true\ntrue #: gpu=2", "line 2: unknown option 'gpu'; did you mean gpus?"),
        (b"true \\\n  #: time=never\nfalse", "line 1: time: 'never' is not a duration"),
        (b"true #: \x1b[2J=1", "line 1: unknown option '\\x1b[2J'"),
        (b"#: gpus=2\ntrue", "line 1: defaults would also apply to all lines submitted later"),
        (b"true\n" + b"x" * 131_072, "line 2: the command has 131,072 bytes; the system accepts at most 131,071"),
        (b"x" * 1_000_000, "line 1: the line has 1,000,000 bytes; no command"),
        (b"true #: x=1\n" * 12, "line 10: unknown option 'x'; the options are gpus"),
        (b"true #: x=1\n" * 12, "and 2 more"),
    ],
    ids=range(14),
)
def test_when_one_line_is_wrong_none_is_written(submit: Submitters, file: Path, text: bytes, words: str) -> None:
    done = submit.run("--to", "queue", stdin=text)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert b"\x1b" not in done.stderr
    assert file.read_bytes() == b"echo first\n"


def test_the_longest_command_is_taken(submit: Submitters, file: Path) -> None:
    line = b"x" * 131_071 + b"   #: name=long"
    assert submit.run("--to", "queue", stdin=line).returncode == 0
    assert file.read_bytes() == b"echo first\n" + line + b"\n"


def test_a_newline_within_a_word_is_refused(submit: Submitters, file: Path) -> None:
    done = submit.run("--to", "queue", "--", "echo", "a\nb")
    assert done.returncode == 2
    assert b"'a\\nb' contains a newline, and a queue takes one command per line" in done.stderr
    assert file.read_bytes() == b"echo first\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["sleep", "5", "#: gpus=2"], "submit -- 'sleep 5  #: gpus=2'"),
        (["sleep", "5", "#:gpu=2", "name=x"], "submit -- 'sleep 5  #:gpu=2 name=x'"),
        (["sleep 2 #: name=w", "echo b"], "submit -- 'sleep 2 #: name=w'; several commands go to stdin, one per line"),
    ],
    ids=range(3),
)
def test_options_in_one_of_several_words_are_refused(
    submit: Submitters, file: Path, words: list[str], meant: str
) -> None:
    done = submit.run("--to", "queue", "--", *words)
    assert done.returncode == 2
    assert (
        f": nothing was submitted: options go inside the quotes: simple_gpu_scheduler {meant}\n" in done.stderr.decode()
    )
    assert file.read_bytes() == b"echo first\n"


def test_the_name_of_a_file_is_no_command(submit: Submitters, file: Path) -> None:
    (file.parent / "more.txt").write_text("echo one\n")
    done = submit.run("--to", file.name, "more.txt")
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "simple_gpu_scheduler submit: nothing was submitted: more.txt is a file, not a command; to add its lines: "
        f"simple_gpu_scheduler submit --to {file.name} < more.txt\n"
    )
    assert file.read_bytes() == b"echo first\n"
    assert submit.run("--to", file.name, "cat more.txt").returncode == 0


def test_stdin_that_cannot_be_read_is_an_error(submit: Submitters, file: Path) -> None:
    with Path(os.devnull).open("wb") as not_for_reading:
        process = submit.start("--to", "queue", stdin=not_for_reading)
    assert process.wait(20) == 2
    assert "nothing was submitted: reading stdin failed: Bad file descriptor" in said(process)
    assert file.read_bytes() == b"echo first\n"


def test_a_terminal_is_read_until_ctrl_d(submit: Submitters, file: Path) -> None:
    ours, theirs = pty.openpty()
    process = submit.start("--to", "queue", stdin=theirs)
    os.close(theirs)
    assert said(process) == "reading commands from the terminal, one per line; Ctrl-D ends the input\n"
    os.write(ours, b"echo typed\n\x04")
    assert process.wait(20) == 0
    os.close(ours)
    assert file.read_bytes() == b"echo first\necho typed\n"


# ---- Which queue


def living_run(tmp_path: Path, second: int, directory: Path, *inputs: tuple[str, Path]) -> int:
    """A journal whose scheduler counts as active for as long as the descriptor is open."""
    runs = tmp_path / "state" / "simple_gpu_scheduler" / "runs"
    files.make_directory(str(runs))
    fd = files.create(str(runs / f"20250101-0000{second:02}-abcdef.jsonl"))
    files.lock(fd, files.SCHEDULER)
    kinds = [{"kind": kind, "path": str(path)} for kind, path in inputs]
    before = records.record("run began", 1.0, version=1, directory="/", inputs=[{"kind": "fifo", "path": "/old"}])
    began = records.record("run began", 2.0, version=1, directory=str(directory), inputs=kinds)
    os.write(fd, (before + began + records.record("continued", 3.0)).encode())
    return fd


def queue_of(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Where it says that a job was submitted to, for a run that does not read."""
    match = re.fullmatch(
        r"submitted 1 job to (.*); run 20250101-.* will number it when it reads the queue\n", done.stderr.decode()
    )
    assert match, done.stderr
    assert done.stdout == b""
    return match[1]


def test_the_queue_is_that_of_the_newest_active_run_here_and_otherwise_of_the_only_one(
    submit: Submitters, tmp_path: Path
) -> None:
    queues = [tmp_path / f"queue {number}" for number in range(4)]
    for queue in queues:
        queue.write_bytes(b"")
    done = submit.run("true")
    assert (done.returncode, b"none of your active runs reads a named pipe or follows" in done.stderr) == (2, True)
    elsewhere = living_run(tmp_path, 1, Path("/usr"), ("file", queues[3]), ("follow", queues[0]))
    living_run(tmp_path, 2, tmp_path, ("file", queues[3]))
    assert queue_of(submit.run("true")) == str(queues[0])
    other = living_run(tmp_path, 3, Path("/usr"), ("follow", queues[1]))
    done = submit.run("true")
    assert done.returncode == 2
    assert f"none of them in this directory: {queues[0]}, {queues[1]}; choose one with --to PATH or SGS_QUEUE" in str(
        done.stderr
    )
    here = [living_run(tmp_path, second, tmp_path, ("follow", queues[second - 2])) for second in (4, 5)]
    assert queue_of(submit.run("true")) == str(queues[3])
    os.close(here[1])
    assert queue_of(submit.run("true")) == str(queues[2])
    os.close(here[0])
    os.close(other)
    assert queue_of(submit.run("true")) == str(queues[0])
    os.close(elsewhere)
    done = submit.run("true", env={**os.environ, "SGS_QUEUE": str(queues[1])})
    assert done.stderr == f"submitted 1 job to {queues[1]}\n".encode()  # that no run reads now
    assert submit.run("true").returncode == 2


def test_a_scheduler_that_reads_a_named_pipe_runs_what_is_submitted(program: Program, submit: Submitters) -> None:
    os.mkfifo(program.directory / "gpu.fifo")
    fifo = os.open(program.directory / "gpu.fifo", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(fifo, True)
    process = program.start("--gpus", "0", "--ignore-occupancy", stdin=fifo)
    os.close(fifo)
    words = ["sh", "-c", "echo 'a  b' $CUDA_VISIBLE_DEVICES >> out"]
    until(lambda: process.poll() is not None or not submit.run("--", *words).returncode, "its queue is found")
    assert submit.run("echo one word >> out   #: gpus=0").returncode == 0
    long = b"".join(b"echo %d >> out; : %s\n" % (number, b"x" * LONG) for number in range(20))
    done = submit.run(stdin=long, env=patient())
    assert (done.returncode, done.stderr) == (0, f"submitted 20 jobs to {program.directory}/gpu.fifo\n".encode())
    assert done.stdout.split() == [b"%d" % number for number in range(3, 23)]
    out = program.directory / "out"
    until(has_text(out, "19\n"), "the last job has run")
    until(has_text(out, "one word\n"))
    assert sorted(out.read_text().splitlines()) == sorted(["a  b 0", "one word", *map(str, range(20))])
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    done = submit.run("true")
    assert (done.returncode, b"none of your active runs" in done.stderr) == (2, True)


# ---- Numbers


class Journal:
    """What a run has recorded of its jobs."""

    def __init__(self, directory: Path) -> None:
        [self.path] = (directory / "state" / "simple_gpu_scheduler" / "runs").glob("*.jsonl")

    def commands(self) -> dict[int, str]:
        found = [each for each in read_records(self.path.read_bytes()).records if each["event"] == "job read"]
        return {each["job"]: each["command"] for each in found}


@pytest.mark.parametrize("name", ["gpu.fifo", "gpu.txt"])
def test_submit_prints_the_numbers_of_its_jobs_and_of_no_others(
    program: Program, submit: Submitters, name: str
) -> None:
    queue = program.directory / name
    if name == "gpu.txt":
        queue.write_text("true\n\n# remark\ntrue")
    process = program.start("--gpus", "0", "--ignore-occupancy", "--follow", name, "-q", stdin=subprocess.DEVNULL)
    until(lambda: process.poll() is not None or submit.run("-q", "true").returncode == 0, "it reads")
    first = submit.run("--", "echo", "mine", env=patient())
    assert (first.returncode, first.stderr) == (0, f"submitted 1 job to {queue}\n".encode())
    journal = Journal(program.directory)
    assert journal.commands()[int(first.stdout)] == "echo mine"
    # Submitters of equal and of different lines at the same time, and a writer that takes no lock.
    text = b"# remark\n\ntrue\necho \\\n  two lines  #: gpus=0\r\ntrue\n"
    both = [submit.start(text=text, env=patient(), stdout=subprocess.PIPE) for _ in range(6)]
    for _ in range(20):
        with queue.open("a") as file:
            file.write("true\n")
    numbers = []
    for each in both:
        assert each.wait(120) == 0
        assert each.stdout
        numbers.append([int(line) for line in each.stdout.read().splitlines()])
        each.stdout.close()
    read = journal.commands()
    assert [[read[number] for number in each] for each in numbers] == [["true", "echo \\\n  two lines", "true"]] * 6
    assert len({number for each in numbers for number in each}) == 18
    assert all(each == sorted(each) for each in numbers)


def test_what_the_run_does_not_read_in_time_is_submitted_without_a_number(program: Program, submit: Submitters) -> None:
    process = program.start("--gpus", "0", "--ignore-occupancy", "--follow", "gpu.fifo", stdin=subprocess.DEVNULL)
    until(lambda: submit.run("true", env=patient()).stdout == b"1\n", "it reads")
    run = Journal(program.directory).path.stem
    process.send_signal(signal.SIGSTOP)
    done = submit.run("touch ran", env=patient(0.1))
    later = f"; run {run} will number it when it reads the queue\n"
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == f"submitted 1 job to {program.directory}/gpu.fifo{later}"
    done = submit.run("--json", stdin=b"true\ntrue\n")
    assert json.loads(done.stdout)["jobs"] == [{"line": n, "job": None, "refused": None} for n in (1, 2)]
    assert b"; run %s will number 2 of them when" % run.encode() in done.stderr
    process.send_signal(signal.SIGCONT)
    until((program.directory / "ran").exists)
    assert submit.run("true", env=patient()).stdout == b"5\n"


def test_a_line_that_the_run_refuses_is_told(program: Program, submit: Submitters) -> None:
    process = program.start("--gpus", "0", "--ignore-occupancy", "--follow", "gpu.fifo", stdin=subprocess.DEVNULL)
    until(lambda: process.poll() is not None or submit.run("true", env=patient()).stdout == b"1\n", "it reads")
    done = submit.run("--json", stdin=b"true #: after=none\ntrue\n", env=patient())
    assert done.returncode == 1
    assert done.stderr.endswith(b"line 1 was refused as job 2: after=none: no earlier job has that name\n")
    told = json.loads(done.stdout)
    assert told == {
        "queue": str(program.directory / "gpu.fifo"),
        "run": Journal(program.directory).path.stem,
        "jobs": [
            {"line": 1, "job": 2, "refused": "after=none: no earlier job has that name"},
            {"line": 2, "job": 3, "refused": None},
        ],
    }
    assert submit.run("true #: after=none", env=patient()).stdout == b""


def test_the_run_can_be_named_instead_of_its_queue(program: Program, submit: Submitters) -> None:
    program.run("--gpus", "0", "--ignore-occupancy", stdin="true\n")
    ended = Journal(program.directory).path.stem
    process = program.start("--gpus", "0", "--ignore-occupancy", "--follow", "gpu.fifo", stdin=subprocess.DEVNULL)
    until(lambda: process.poll() is not None or submit.run("true", env=patient()).stdout == b"1\n", "it reads")
    runs = program.directory / "state" / "simple_gpu_scheduler" / "runs"
    [run] = {path.stem for path in runs.glob("*.jsonl")} - {ended}
    done = submit.run("--run", run, "true", env=patient() | {"SGS_QUEUE": "other"})
    assert (done.stdout, b"(run " in done.stderr) == (b"2\n", False)
    (elsewhere := program.directory / "elsewhere").mkdir()
    done = submit.run("exit 3", env=patient(), cwd=elsewhere)
    until(lambda: b"job 3 (line 3) failed" in (process.stderr.readline() if process.stderr else b""), "lines count")
    told = f"submitted 1 job to {program.directory}/gpu.fifo (run {run[-6:]})\n"
    assert (done.stdout, done.stderr.decode()) == (b"3\n", told)
    for args, words in (
        (("--run", ended), f"run {ended} is not active; to run its unfinished jobs: simple_gpu_scheduler --resume"),
        (("--run", run, "--to", "gpu.fifo"), "--to and --run exclude each other"),
        (("-q", "--json"), "--quiet and --json exclude each other"),
    ):
        done = submit.run(*args, "true")
        assert (done.returncode, words in done.stderr.decode()) == (2, True), done.stderr
    other = program.start("--gpus", "1", "--ignore-occupancy")
    until(lambda: len(list(runs.glob("*.sock"))) == 2, "it listens")
    [name] = {path.stem for path in runs.glob("*.sock")} - {run}
    done = submit.run("--run", name, "true")
    assert f"run {name} reads no named pipe and follows no file, so it takes no more jobs" in done.stderr.decode()
    program.feed(other, "")
