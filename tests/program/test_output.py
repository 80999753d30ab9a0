"""Where jobs print: as this program does, whole, line by line with a tag, or to files with a header and a footer."""

import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from simple_gpu_scheduler.output.log_file import output_of
from tests.conftest import SCHEDULER, UNMEASURED, Program, has_text, until
from tests.support.processes import children_of

RUN = r"\d{8}-\d{6}-[0-9a-f]{6}"
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}"


def logs(program: Program, directory: str = "logs") -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((program.directory / directory).iterdir())}


def own_logs(program: Program) -> Path:
    """The logs beside the journal of the only run."""
    (found,) = (program.directory / "state" / "simple_gpu_scheduler" / "runs").glob("*.logs")
    return found


def test_group_shows_each_job_whole_and_never_mixed(program: Program) -> None:
    lines = "".join(
        f"for i in 1 2 3; do echo {each} $i; sleep 0.0{each}; echo {each} err >&2; done\n" for each in range(1, 7)
    )
    done = program.run("--gpus", "0-5", "--output", "group", stdin=lines)
    blocks = re.findall(r"(?:(\d) [123]\n\1 err\n){3}", done.stdout.decode())
    assert sorted(blocks) == ["1", "2", "3", "4", "5", "6"]
    assert done.stdout.count(b"\n") == 36


def test_group_ends_the_last_line_of_a_job(program: Program) -> None:
    done = program.run("--gpus", "0", "--output", "group", stdin="printf one\nprintf two\ntrue\n")
    assert done.stdout == b"one\ntwo\n"


def test_group_shows_each_attempt_apart(program: Program) -> None:
    done = program.run("--gpus", "0", "--output", "group", "--retries", "1", stdin="echo $SGS_ATTEMPT; exit 1\n")
    assert done.stdout == b"1\n2\n"


def test_tag_shows_lines_as_they_come_each_with_its_job(program: Program) -> None:
    process = program.start("--gpus", "0,1", "--output", "tag")
    program.feed(
        process, "echo first; until test -e go; do sleep 0.01; done; printf last\necho other >&2 #: name=big\n"
    )
    assert process.stdout
    assert sorted(process.stdout.readline() for _ in range(2)) == [b"[1] first\n", b"[big] other\n"]
    (program.directory / "go").touch()
    assert process.stdout.read() == b"[1] last\n"
    assert process.wait(timeout=120) == 0


PRINTS_AND_WAITS = "print('first'); open('printed', 'w'); import time; time.sleep(1000)"


@pytest.mark.unmeasured
def test_what_python_prints_is_in_the_log_at_once_and_stays_there_when_the_job_is_killed(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    process = program.start("--gpus", "0", "--logs", "logs", "--grace", "0", env=dict(os.environ))
    program.feed(process, f'exec {sys.executable} -c "{PRINTS_AND_WAITS}"\n')
    until((program.directory / "printed").exists)
    assert "\nfirst\n" in logs(program)["0001.log"]
    process.terminate()
    process.communicate(timeout=120)
    assert "\nfirst\n" in logs(program)["0001.log"]


@pytest.mark.unmeasured
def test_python_is_told_not_to_buffer_only_where_there_is_no_terminal_and_the_user_says_nothing(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    show = "echo ${PYTHONUNBUFFERED-unset} >> seen"
    ours, terminal = os.openpty()
    for mine, stdout, args in [
        ({}, subprocess.PIPE, ()),
        ({}, terminal, ("--progress", "plain")),
        ({}, terminal, ("--output", "files")),
        ({"PYTHONUNBUFFERED": ""}, subprocess.PIPE, ()),
    ]:
        process = program.start("--gpus", "0", "-q", *args, stdout=stdout, env=os.environ | mine)
        program.feed(process, show)
        assert process.wait(timeout=120) == 0
    for stdout in (subprocess.PIPE, terminal):
        process = program.start("run", "--gpus", "0", "--", "sh", "-c", show, stdout=stdout)
        assert process.wait(timeout=120) == 0
    os.close(ours)
    os.close(terminal)
    assert (program.directory / "seen").read_text().split("\n") == ["1", "unset", "1", "", "1", "unset", ""]


def test_tag_shows_what_is_left_of_a_line_that_was_written_over(program: Program) -> None:
    done = program.run("--gpus", "0", "--output", "tag", stdin="printf '10%%\\r20%%\\r100%%\\n\\r\\nend\\r\\n\\n'\n")
    assert done.stdout == b"[1] 100%\n[1] \n[1] end\n[1] \n"


def test_files_have_a_header_and_a_footer(program: Program) -> None:
    jobs = "echo one #: name=the/first\necho two; exit 3\nkill -9 $$\nsleep 100 #: timeout=0.1\n/no/such\n"
    done = program.run("--gpus", "0", "--logs", "logs", stdin=jobs)
    assert done.stdout == b""
    found = logs(program)
    assert list(found) == ["0001-the_first.log", "0002.log", "0003.log", "0004.log", "0005.log"]
    mark = r"\[simple_gpu_scheduler\] "
    assert re.fullmatch(
        f'{mark}job 1 "the/first" \\(line 1\\) of run {RUN}, attempt 1, on gpu 0, started {MOMENT}\n'
        f"{mark}command: echo one\none\n{mark}ended {MOMENT} after 0.\\d s: succeeded with exit code 0\n",
        found["0001-the_first.log"],
    )
    ends = [text.splitlines()[-1].partition("s: ")[2] for text in found.values()]
    assert ends[1:] == ["failed with exit code 3", "was killed by SIGKILL", "timed out", "failed with exit code 127"]


def test_a_log_is_for_its_owner_alone(program: Program) -> None:
    program.run("--gpus", "0", "--output", "files", stdin="echo my password\n")
    directory = own_logs(program)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()] == [0o600]


def test_a_log_that_is_a_link_of_another_user_is_not_followed(program: Program) -> None:
    (program.directory / "logs").mkdir()
    (program.directory / "precious").write_text("as it was")
    (program.directory / "logs" / "0001.log").symlink_to(program.directory / "precious")
    done = program.run("--gpus", "0", "--logs", "logs", stdin="echo here\n")
    assert b"job 1 prints here, since its log" in done.stderr
    assert (done.stdout, done.returncode) == (b"here\n", 1)
    assert (program.directory / "precious").read_text() == "as it was"


def test_all_attempts_stand_in_one_log(program: Program) -> None:
    program.run("--gpus", "0", "--logs", "logs", "--retries", "2", stdin="printf $SGS_ATTEMPT; exit 1\n")
    (text,) = logs(program).values()
    assert re.findall(r"attempt (\d)", text) == ["1", "2", "3"]
    assert re.findall(r"^(\d)$", text, re.MULTILINE) == ["1", "2", "3"]
    assert text.count("failed with exit code 1\n") == 3
    assert output_of(text) == "3\n"


@pytest.mark.parametrize("output", [[], ["--output", "group"], ["--output", "tag"]], ids=str)
def test_logs_of_failed_jobs_only(program: Program, output: list[str]) -> None:
    jobs = "echo fine\necho bad; exit 1\n"
    done = program.run("--gpus", "0", "--logs", "logs", "--logs-failed-only", *output, stdin=jobs)
    assert list(logs(program)) == ["0002.log"]
    assert done.stdout.count(b"fine") == done.stdout.count(b"bad") == (1 if output else 0)


def test_the_log_that_was_deleted_is_missed_in_words(program: Program) -> None:
    program.run("--gpus", "0", "--logs-failed-only", stdin="echo fine\n")
    done = program.run("logs", "1")
    assert done.returncode == 2
    assert b"job 1" in done.stderr
    assert b"--logs-failed-only" in done.stderr


def test_of_a_log_that_two_runs_have_written_each_shows_its_own(program: Program) -> None:
    for loss in (1, 2):
        program.run(
            "--gpus", "0", "--logs", "logs", "--retries", "1", stdin=f"echo loss {loss}; exit $((2 - $SGS_ATTEMPT))\n"
        )
    newest, oldest = (json.loads(program.run("history", "--json").stdout)[at]["run"] for at in (0, 1))
    assert (program.directory / "logs" / "0001.log").read_text().count(
        "loss 1"
    ) == 4  # with the commands in the headers
    for run, own, other in ((oldest, "1", "2"), (newest, "2", "1")):
        shown = program.run("logs", "1", "--run", run).stdout.decode()
        assert f"\nloss {own}\n" in shown
        assert f"\nloss {other}\n" not in shown
        report = json.loads(program.run("report", run, "--json", "--metric", "loss").stdout)
        assert [(job["result"], job["tail"]) for job in report["jobs"]] == [(float(own), f"loss {own}")]


def test_an_input_with_a_strange_name_is_shown_safely_and_spoils_no_header(program: Program) -> None:
    name = "a\x1b[31m\n.txt"
    (program.directory / name).write_text("echo hi; exit 1\n")
    done = program.run("--gpus", "0", "--output", "group", name, name)
    assert done.stdout == b"hi\nhi\n"
    assert b"line 1 of a\\x1b[31m\\n.txt" in done.stderr
    assert b"\x1b" not in done.stderr


def test_a_later_run_deletes_no_log_of_an_earlier_one(program: Program) -> None:
    for code in (1, 0):
        program.run("--gpus", "0", "--logs", "logs", "--logs-failed-only", stdin=f"echo {code}; exit {code}\n")
    (text,) = logs(program).values()
    assert output_of(text) == "1\n"


def test_two_runs_do_not_write_to_one_directory_at_a_time(program: Program) -> None:
    process = program.start("--gpus", "0", "--logs", "logs")
    program.feed(process, "until test -e go; do sleep 0.01; done\n")
    until((program.directory / "logs" / "0001.log").exists)
    done = program.run("--gpus", "1", "--logs", "logs", stdin="touch started\n")
    assert (done.returncode, b"another active run keeps its logs in" in done.stderr) == (2, True)
    assert not (program.directory / "started").exists()
    (program.directory / "go").touch()
    assert process.wait(timeout=120) == 0


@pytest.mark.parametrize("keeper_too", [False, True])
def test_no_other_run_writes_where_a_job_of_a_killed_one_still_prints(program: Program, keeper_too: bool) -> None:
    process = program.start("--gpus", "0", "--logs", "logs", env=UNMEASURED)
    program.feed(process, "true\necho before; until test -e go; do sleep 0.01; done; echo after #: name=a\n")
    log = program.directory / "logs" / "0002-a.log"
    until(has_text(log, "before\n"))
    keepers = children_of(process.pid) if keeper_too else []
    for pid in (process.pid, *keepers):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    (journal,) = (program.directory / "state" / "simple_gpu_scheduler" / "runs").glob("*.jsonl")
    other = ("--gpus", "1", "--logs", "logs")
    done = program.run(*other, stdin="touch started\n")
    said = (
        f"a job of run {journal.stem} is still running and prints to {log}, although the scheduler of that run is gone"
    )
    assert done.returncode == 2
    assert (
        f"{said}; continue that run with: simple_gpu_scheduler --resume {journal.stem}, or name" in done.stderr.decode()
    )
    assert not (program.directory / "started").exists()
    resumed = program.start("--resume", "--progress", "plain", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert resumed.stderr
    assert b"1 still running (job 2)" in resumed.stderr.readline()
    (program.directory / "go").touch()
    assert resumed.wait(timeout=120) == 0
    resumed.stderr.close()
    assert "before\nafter\n" in log.read_text()
    assert program.run(*other, stdin="touch started\n").returncode == 0


def test_the_logs_of_several_jobs_and_of_all_that_failed_are_printed(program: Program) -> None:
    program.run("--gpus", "0", "--logs", "logs", stdin="echo one; exit 1\necho two\necho three; exit 1\n")
    lines = [line for line in program.run("logs", "2", "1").stdout.decode().split("\n") if not line.startswith("[")]
    assert lines == ["two", "one", ""]
    lines = [line for line in program.run("logs", "--failed").stdout.decode().split("\n") if not line.startswith("[")]
    assert lines == ["one", "three", ""]
    for wrong in (["logs"], ["logs", "1", "--failed"], ["logs", "1", "2", "-f"], ["logs", "--failed", "-f"]):
        assert program.run(*wrong).returncode == 2


def test_what_group_and_tag_show_is_kept_beside_the_journal(program: Program) -> None:
    program.run("--gpus", "0", "--output", "group", stdin="echo kept\n")
    assert b"\nkept\n" in program.run("logs", "1").stdout
    assert (own_logs(program) / "0001.log").exists()


def test_logs_go_with_their_run(program: Program) -> None:
    for _ in range(3):
        program.run("--gpus", "0", "--output", "files", "--keep-runs", "1", stdin="echo x\n")
    assert own_logs(program).is_dir()


@pytest.mark.parametrize("output", ["group", "tag", "files"])
def test_without_a_journal_there_is_another_place_for_logs(program: Program, output: str, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    settings = {"stdin": "echo shown\n", "env": environment}
    done = program.run("--gpus", "0", "--no-journal", "--output", output, **settings)
    assert done.returncode == 0
    if output == "files":
        (directory,) = tmp_path.glob("simple_gpu_scheduler-*")
        assert "shown" in (directory / "0001.log").read_text()
        assert str(directory).encode() in done.stderr
    else:
        assert done.stdout.endswith(b"shown\n")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--output", "inherit", "--logs", "x"], b"--output inherit keeps no logs"),
        (["--output", "inherit", "--logs-failed-only"], b"--output inherit keeps no logs"),
        (["--logs", "file/x"], b"--logs file/x: Not a directory"),
    ],
    ids=str,
)
def test_what_is_impossible_is_reported_before_anything_starts(
    program: Program, args: list[str], sentence: bytes
) -> None:
    (program.directory / "file").touch()
    done = program.run("--gpus", "0", *args, stdin="touch started\n")
    assert (done.returncode, sentence in done.stderr) == (2, True)
    assert not (program.directory / "started").exists()


@pytest.mark.parametrize("output", ["group", "tag"])
def test_a_reader_that_leaves_ends_no_job(program: Program, output: str) -> None:
    command = f"{' '.join(SCHEDULER)} --gpus 0 --output {output} | head -n 1"
    jobs = "".join(f"seq 100000; touch ran-{each}\n" for each in range(3))
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        input=jobs.encode(),
        cwd=program.directory,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0
    assert done.stdout in (b"1\n", b"[1] 1\n")
    assert len(list(program.directory.glob("ran-*"))) == 3


@pytest.mark.parametrize("output", ["group", "tag"])
def test_output_that_cannot_be_written_is_a_failure(program: Program, output: str) -> None:
    with open("/dev/full", "wb") as full:
        done = program.run(
            "--gpus",
            "0",
            "--output",
            output,
            stdin="echo x\n",
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 1
    assert b"cannot show the jobs' output any more (No space left on device); it is kept in their logs" in done.stderr


@pytest.mark.parametrize("output", ["group", "tag"])
def test_output_is_appended_where_the_shell_appends(program: Program, output: str) -> None:
    target = program.directory / "all.txt"
    target.write_text("before\n")
    with target.open("ab") as file:
        program.run("--gpus", "0", "--output", output, stdin="seq 3\n", capture_output=False, stdout=file)
    tag = "[1] " if output == "tag" else ""
    assert target.read_text() == "before\n" + "".join(f"{tag}{each}\n" for each in (1, 2, 3))


@pytest.mark.parametrize("output", ["group", "tag", "files"])
def test_a_killed_scheduler_takes_no_output_with_it(program: Program, output: str) -> None:
    job = "test $SGS_ATTEMPT = 2 || exit 1; echo begin; touch begun; until test -e go; do sleep 0.01; done; echo end\n"
    process = program.start("--gpus", "0", "--output", output, "--retries", "1", env=UNMEASURED)
    program.feed(process, job)
    until((program.directory / "begun").exists)
    process.kill()
    process.wait()
    (program.directory / "go").touch()
    log = own_logs(program) / "0001.log"
    until(has_text(log, "\nend\n"))
    done = program.run("--resume", capture_output=True)
    assert done.returncode == 0
    text = log.read_text()
    assert output_of(text) == "begin\nend\n"
    assert text.endswith("succeeded with exit code 0\n")
    if output == "group":
        assert done.stdout == b"begin\nend\n"


@pytest.mark.parametrize("output", ["group", "tag"])
def test_much_output_takes_little_memory(program: Program, output: str) -> None:
    script = f"""
import resource, subprocess, sys
done = subprocess.run({[*SCHEDULER, "--gpus", "0", "--output", output]!r}, stdin=open("jobs"), stdout=open("out", "wb"))
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
    (program.directory / "jobs").write_text("yes 0123456789 | head -c 300000000\n")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=program.directory, capture_output=True, check=True, env=UNMEASURED
    )
    code, kibibytes = map(int, done.stdout.split())
    lines = 300_000_000 // 11
    assert code == 0
    assert (program.directory / "out").stat().st_size >= lines * (11 if output == "group" else 15)
    assert kibibytes < 60_000


MARK = b"[simple_gpu_scheduler]"
WAIT = "until test -e go; do sleep 0.02; done"
BOTH = pytest.mark.parametrize("output", ["group", "tag"])


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_tags_never_stand_before_the_footer_of_a_log(program: Program) -> None:
    done = program.run("--gpus", "0,1,2,3", "-q", "--output", "tag", stdin="".join(f"echo {n}\n" for n in range(1000)))
    assert MARK not in done.stdout
    assert done.stdout.count(b"\n") == 1000


@pytest.mark.parametrize("output", ["group", "tag", "files"])
def test_a_log_that_is_a_named_pipe_stops_nothing(program: Program, output: str) -> None:
    (program.directory / "logs").mkdir()
    os.mkfifo(program.directory / "logs" / "0001.log")
    process = program.start("--gpus", "0", "--output", output, "--logs", "logs", env=UNMEASURED)
    try:
        out, err = process.communicate(b"echo one\necho two\n", timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail("it waits for a reader of the pipe")
    assert process.returncode == 1
    assert b"one\n" in out
    assert b"job 1 prints here, since its log" in err


@BOTH
def test_a_job_that_opens_dev_stderr_loses_no_output_behind_that(program: Program, output: str) -> None:
    jobs = "echo lost >/dev/stderr\necho one; echo two >/dev/stderr; echo three; echo four\n"
    done = program.run("--gpus", "0", "--output", output, stdin=jobs)
    assert [line.rpartition(b" ")[2] for line in done.stdout.splitlines()[-3:]] == [b"two", b"three", b"four"]
    assert b"lost\n" in done.stdout


@BOTH
def test_what_fitted_on_a_full_disk_is_shown(program: Program, output: str) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    job = "trap '' XFSZ; echo first; head -c 100000 /dev/zero 2>&1 | tr '\\0' x\n"
    done = program.run("--gpus", "0", "--output", output, "--no-journal", "--logs", "logs", stdin=job, preexec_fn=limit)
    assert b": File too large" in done.stderr
    assert b"first\n" in done.stdout
    assert b"xxx" in done.stdout


def test_logs_that_are_deleted_leave_no_descriptors_open(program: Program) -> None:
    jobs = "".join(f"echo {n}; sleep 0.02; rm logs/{n:04}.log\n" for n in range(1, 61))
    process = program.start("--gpus", "0,1", "-q", "--output", "tag", "--logs", "logs", env=UNMEASURED)
    program.feed(process, f"{jobs}touch last; {WAIT}\n")
    until((program.directory / "last").exists)
    try:
        until(lambda: descriptors(process.pid) < 40, f"{descriptors(process.pid)} are open")
    finally:
        (program.directory / "go").touch()
        process.wait(timeout=120)


@BOTH
def test_logs_are_kept_when_what_stands_in_them_could_not_be_shown(program: Program, output: str) -> None:
    with open("/dev/full", "wb") as full:
        args = ("--gpus", "0", "-q", "--output", output, "--logs", "logs", "--logs-failed-only")
        done = program.run(*args, stdin="echo x\n", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert b"it is kept in their logs" in done.stderr
    assert list((program.directory / "logs").iterdir())


def test_two_runs_in_one_directory_do_not_mix_what_their_jobs_print(program: Program) -> None:
    job = f"echo from-$SGS_RUN_ID; touch begun-$1; {WAIT}; echo from-$SGS_RUN_ID\n"
    runs = []
    for gpu in "01":
        args = ("--gpus", gpu, "-q", "--output", "tag", "--logs", "logs")
        runs.append(program.start(*args, env=UNMEASURED))
        program.feed(runs[-1], job.replace("$SGS_RUN_ID", f"run{gpu}").replace("$1", gpu))
    until(lambda: all((program.directory / f"begun-{gpu}").exists() or runs[int(gpu)].poll() for gpu in "01"))
    (program.directory / "go").touch()
    for gpu, run in zip("01", runs, strict=True):
        out, err = run.communicate(timeout=120)
        assert b"from-run" + (b"1" if gpu == "0" else b"0") not in out
        assert run.returncode == 0 or b"--logs" in err  # a second run there may be refused


def test_an_attempt_without_a_recorded_end_does_not_hide_the_next_header(program: Program) -> None:
    process = program.start("--gpus", "0", "--output", "files", "--logs", "logs", env=UNMEASURED)
    program.feed(process, f"printf begin; echo $PPID > keeper; {WAIT}\n")
    until(has_text(program.directory / "keeper"))
    os.kill(int((program.directory / "keeper").read_text()), 9)
    process.kill()
    process.wait()
    (program.directory / "go").touch()
    assert program.run("--resume").returncode == 0
    text = (program.directory / "logs" / "0001.log").read_text()
    assert re.findall(r"^\[simple_gpu_scheduler\] job 1 .*attempt (\d)", text, re.MULTILINE) == ["1", "2"]


def test_a_run_resumed_with_another_directory_for_logs_finishes_the_old_ones(program: Program) -> None:
    process = program.start("--gpus", "0", "--output", "group", "--logs", "old", env=UNMEASURED)
    program.feed(process, f"echo shown; touch begun; {WAIT}\n")
    until((program.directory / "begun").exists)
    process.kill()
    process.wait()
    (program.directory / "go").touch()
    done = program.run("--resume", "--logs", "new")
    assert done.stdout == b"shown\n"
    assert "succeeded with exit code 0" in (program.directory / "old" / "0001.log").read_text()
