"""What jobs are read from: files, pipes and what can be wrong with them."""

import os
import re
import subprocess

import pytest

from simple_gpu_scheduler.inputs.reader import Batch, EndOfInput, OpenInput, Reader
from simple_gpu_scheduler.jobfile.parse import LineParser
from tests.conftest import SCHEDULER, Program, until

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

GIB = 2**30


def read_all(*inputs: OpenInput, by_null: bool = False) -> tuple[list[object], EndOfInput]:
    messages: list[Batch | EndOfInput] = []
    parser = LineParser(lambda: (80 * GIB,) * 4)
    Reader(list(inputs), parser, messages.append, lambda: None, by_null=by_null).run()
    *batches, ended = messages
    assert isinstance(ended, EndOfInput)
    return [job for batch in batches if isinstance(batch, Batch) for job in batch.jobs], ended


def test_a_pipe_that_was_made_non_blocking_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with subprocess.Popen(["sh", "-c", "echo one"], stdout=writing):
        os.close(writing)
        jobs, ended = read_all(OpenInput(reading))
    assert len(jobs) == 1
    assert not ended.problem


COMMAND = " ".join(SCHEDULER)


def sh(program: Program, script: str, shell: str = "sh", **settings) -> "subprocess.CompletedProcess[str]":
    settings = {"capture_output": True, "text": True, "timeout": 60, "cwd": program.directory} | settings
    return subprocess.run([shell, "-c", script], check=False, **settings)


# Input.


def test_the_tail_of_a_line_that_is_too_long_is_no_job(program: Program) -> None:
    done = program.run("--gpus", "0", stdin="true " + "x" * 200_000 + " \\\ntouch tail\n" + "echo next\n")
    assert done.stdout == b"next\n"
    assert not (program.directory / "tail").exists()
    done = program.run("--gpus", "0", stdin="true \\\n" * 50_000 + "touch tail\necho next\n")
    assert done.stdout == b"next\n"
    assert done.returncode == 2
    assert not (program.directory / "tail").exists()


@pytest.mark.parametrize(
    "line", ["#!/usr/bin/env python3", "#!/usr/bin/python3 -u"], ids=["found by env", "with an option"]
)
def test_a_program_of_another_language_is_refused_before_anything_starts(program: Program, line: str) -> None:
    train = program.directory / "train"
    train.write_text(f"{line}\nimport os\ntouch ran\n")
    (program.directory / "jobs.txt").write_text("touch ran\n")
    words = line[2:].removeprefix("/usr/bin/env ")
    said = (
        f"is not a list of commands: its first line says that it is a program for {words.split()[0]}; to run it: "
        f"simple_gpu_scheduler run -- {words}"
    )
    done = program.run("--gpus", "0", "jobs.txt", "train")
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"train {said} train\n" in done.stderr.decode()
    from_stdin = sh(program, f"{COMMAND} --gpus 0 < train")
    assert from_stdin.returncode == 2
    assert f"{train} {said} {train}\n" in from_stdin.stderr
    assert not (program.directory / "ran").exists()


def test_a_shell_script_is_a_list_of_commands_and_so_is_what_the_shell_of_the_run_reads(program: Program) -> None:
    (program.directory / "jobs").write_text("#!/usr/bin/env bash\necho one\n")
    assert program.run("--gpus", "0", "jobs").stdout == b"one\n"
    (program.directory / "jobs").write_text("#!/usr/bin/env python3\nprint('two')\n")
    assert program.run("--gpus", "0", "--shell", "python3", "jobs").stdout == b"two\n"


def test_blanks_hide_neither_a_job_nor_an_option(program: Program) -> None:
    blanks = " " * 200_000
    done = program.run("--gpus", "0", stdin=f"{blanks}touch ran\ntrue #: gpus=1{blanks}bogus=1\n")
    assert done.returncode == 2
    assert done.stderr.count(b"no command with its options is that long") == 2


def test_an_option_without_end_is_refused_and_the_run_continues(program: Program) -> None:
    done = program.run("--gpus", "0", stdin=f"echo a\necho x #: mem={'9' * 400}\necho b\n")
    assert (done.returncode, done.stdout) == (2, b"a\nb\n")


def test_standard_input_that_cannot_be_read_is_reported(program: Program) -> None:
    done = sh(program, f"{COMMAND} --gpus 0 0>written")
    assert done.returncode == 1
    assert "reading stdin failed: Bad file descriptor" in done.stderr


def test_a_named_pipe_that_is_not_held_open_waits_for_its_first_writer(program: Program) -> None:
    fifo = program.directory / "fifo"
    os.mkfifo(fifo)
    process = program.start("--gpus", "0", "--no-follow", "fifo")
    fifo.write_text("echo x\n")
    assert process.communicate(timeout=120)[0] == b"x\n"
    assert process.returncode == 0


def changed_while_read(program: Program, more: bytes) -> tuple[int, str]:
    """The exit code and stderr of a run whose file is overwritten in place while its first job runs."""
    path = program.directory / "jobs.txt"
    jobs = b"".join(b"echo old %d >> out #: after=first\n" % number for number in range(14_000))
    path.write_bytes(b"touch began; while [ ! -e go ]; do sleep 0.01; done; false #: name=first\n" + jobs + more)
    process = program.start("--gpus", "0", "jobs.txt", stdout=subprocess.DEVNULL)
    until((program.directory / "began").exists)
    with path.open("r+b") as file:
        file.write(b"echo a new line >> out\n" * 20_000)
    (program.directory / "go").touch()
    stderr = process.communicate(timeout=120)[1].decode()
    assert not (program.directory / "out").exists()  # what was torn would not depend on the first job
    return process.returncode, stderr


def test_a_file_that_is_overwritten_while_it_is_read_loses_and_tears_no_line(program: Program) -> None:
    code, stderr = changed_while_read(program, b"")
    assert code == 1
    assert "0 succeeded, 1 failed, 0 timed out, 14000 not started in" in stderr


def test_a_file_too_large_to_be_kept_is_read_no_further_when_it_changes(program: Program) -> None:
    code, stderr = changed_while_read(program, (b"#" * 1023 + b"\n") * (65 << 10))
    assert code == 2
    assert re.search(
        r"^jobs\.txt: another program wrote to it while it was read; line \d+ and the lines after it were not read\. "
        r"When the file is complete, run the rest with --resume$",
        stderr,
        re.MULTILINE,
    )
    assert re.search(
        r"^0 succeeded, 1 failed, .* not started in .*; the rest of the input was not read$", stderr, re.MULTILINE
    )
    (program.directory / "jobs.txt").write_text("echo the rest\n")
    assert program.run("--resume").stdout == b"the rest\n"
