"""What was run before is known from the job log, ours or GNU parallel's.

`python -m tests.program.test_joblog_resume` asks the GNU parallel that is installed and writes the golden file anew.
"""

import json
import subprocess
import tempfile
from pathlib import Path

from simple_gpu_scheduler.joblog.resume import (
    HEADER,
    read_joblog,
)
from tests.conftest import Program
from tests.unit.joblog.test_resume import EDITED, GOLDEN, LINES, NUMBERS, repair

COMMANDS = "echo 1\nfalse\nkill -9 $$\nexit 3\necho  a\tb\n"


def write_log(program: Program, *rows: tuple[int, int, int, str]) -> None:
    """As GNU parallel writes it, its host's name included."""
    lines = (
        f"{seq}\tgpubox\t1700000000.123\t     0.001\t0\t2\t{code}\t{sig}\t{text}\n" for seq, code, sig, text in rows
    )
    (program.directory / "log").write_bytes(HEADER + "".join(lines).encode())


def numbers(program: Program) -> list[int]:
    """Of all rows of the log."""
    return [row.number for row in read_joblog((program.directory / "log").read_bytes()).rows]


def test_a_log_of_gnu_parallel_is_resumed(program: Program) -> None:
    write_log(program, (1, 0, 0, "echo a"), (2, 1, 0, "echo b"))
    (program.directory / "jobs").write_text("echo a\necho b\necho c\n")
    done = program.run("--gpus", "0", "--joblog", "log", "--resume", "jobs")
    assert (done.returncode, done.stdout) == (0, b"c\n")
    assert (
        b"skipped, since they are in the job log log: 1 succeeded, 1 did not (to retry: --resume-failed)" in done.stderr
    )
    assert numbers(program) == [1, 2, 3]
    done = program.run("--gpus", "0", "--joblog", "log", "--resume-failed", "jobs")
    assert (done.returncode, done.stdout) == (0, b"b\n")
    assert numbers(program) == [1, 2, 3, 2]
    done = program.run("--gpus", "0", "--joblog", "log", "--resume-failed", "jobs")
    assert (done.returncode, done.stdout) == (0, b"")


def test_without_a_log_everything_is_run_and_logged(program: Program) -> None:
    done = program.run("--gpus", "0", "--joblog", "log", "--resume", stdin="echo a\n")
    assert (done.returncode, done.stdout) == (0, b"a\n")
    assert numbers(program) == [1]


def test_what_comes_after_a_job_that_stays_failed_is_not_run_and_after_one_that_succeeded_is(program: Program) -> None:
    write_log(program, (1, 1, 0, "false"), (2, 0, 0, "true"))
    (program.directory / "jobs").write_text("false #: name=x\ntrue #: name=y\necho x #: after=x\necho y #: after=y\n")
    done = program.run("--gpus", "0", "--joblog", "log", "--resume", "jobs")
    assert (done.returncode, done.stdout) == (1, b"y\n")
    assert b"a job it depends on did not succeed" in done.stderr


def test_another_command_under_the_same_number_is_reported(program: Program) -> None:
    write_log(program, (1, 0, 0, "echo a"))
    done = program.run("--gpus", "0", "--joblog", "log", "--resume", stdin="echo z\necho b\n")
    assert (done.returncode, done.stdout) == (0, b"b\n")
    assert b"1 of them had another command there, the first at line 1" in done.stderr


def test_a_file_that_is_no_job_log_is_refused_and_kept(program: Program) -> None:
    (program.directory / "log").write_text("my thesis\n")
    done = program.run("--gpus", "0", "--joblog", "log", "--resume", stdin="echo a\n")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"log is not a job log" in done.stderr
    assert (program.directory / "log").read_text() == "my thesis\n"


def ask_parallel(*args: str, text: str, log: bytes) -> str | None:
    """Which jobs it runs; None when it refuses the log."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(log)
        file.flush()
        argv = ["parallel", "--will-cite", "-j1", "--joblog", file.name, *args]
        done = subprocess.run(argv, input=text, text=True, capture_output=True, check=False)
        if done.returncode == 255:
            assert "is wrong" in done.stderr
            return None
        return done.stdout.replace("\n", "") if log or "--dry-run" in args else Path(file.name).read_text()


def ask_twice(log: bytes) -> list[str | None]:
    text = "".join(f"{number}\n" for number in NUMBERS)
    return [ask_parallel(option, "--dry-run", text=text, log=log) for option in ("--resume", "--resume-failed")]


def write_golden() -> None:
    """Ask the GNU parallel that is installed."""
    log = ask_parallel(text=COMMANDS, log=b"") or ""
    cuts = [log[:cut].encode() for cut in range(len(log) + 1)]
    found = {
        "log": log,
        "lines": ask_parallel(text=LINES.decode().partition("echo c")[0], log=b""),
        "lines -r": ask_parallel("-r", text=LINES.decode().partition("echo c")[0], log=b""),
        "edited": {name: ask_twice(edited) for name, edited in EDITED.items()},
        "cuts": [ask_twice(cut) for cut in cuts],
        "mended": [ask_twice(repair(cut)) for cut in cuts],
    }
    GOLDEN.write_text(json.dumps(found).replace('"cuts"', '\n"cuts"').replace('"mended"', '\n"mended"') + "\n")


if __name__ == "__main__":
    write_golden()
