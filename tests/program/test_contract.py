"""The contracts of the design, each as a test of the whole program that reads like its sentence."""

import json
import os
import re
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import ROOT, SCHEDULER, UNMEASURED, Program, needs

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere


def lines_of(done: "subprocess.CompletedProcess[bytes]") -> list[str]:
    return done.stdout.decode("utf-8", "surrogateescape").splitlines()


# Input.


def test_a_line_is_a_job_and_a_last_line_without_a_newline_counts(program: Program) -> None:
    done = program.run("--gpus", "0", stdin="echo one\n\n   \n# comment\necho two")
    assert lines_of(done) == ["one", "two"]
    assert done.returncode == 0


def test_a_line_that_ends_in_a_backslash_continues_in_the_next(program: Program) -> None:
    assert lines_of(program.run("--gpus", "0", stdin="echo a \\\n  b\necho 'c\\\\'\n")) == ["a b", r"c\\"[:-1]]


def test_with_null_jobs_may_hold_newlines_and_here_documents(program: Program) -> None:
    done = program.run("--gpus", "0", "-0", stdin="cat <<E\none\n#: two\nE\0echo three\n#: gpus=0\n\0")
    assert sorted(lines_of(done)) == ["#: two", "one", "three"]


def test_crlf_is_not_part_of_the_command(program: Program) -> None:
    done = program.run("--gpus", "0", stdin=b"echo a\r\necho b #: gpus=0\r\n")
    assert sorted(done.stdout.splitlines(keepends=True)) == [b"a\n", b"b\n"]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(min_size=1, max_size=40).map(lambda text: text.replace(b"\0", b"")), min_size=1, max_size=25))
def test_any_bytes_reach_the_shell_unchanged(program: Program, texts: list[bytes]) -> None:
    """Quoted for the shell and separated by NUL, whatever is in a string comes out of printf as it went in."""
    quoted = [b"'" + text.replace(b"'", b"'\\''") + b"'" for text in texts]
    stdin = b"".join(b"printf %%s %s > %d\0" % (text, number) for number, text in enumerate(quoted))
    assert program.run("--gpus", "0-3", "-0", stdin=stdin).returncode == 0
    assert [(program.directory / str(number)).read_bytes() for number in range(len(texts))] == texts


@pytest.mark.parametrize(
    "line",
    [
        b"printf '%s' 'tab\there'",
        b"printf '%s' \"quo'ted\"",
        b"X=1; printf '%s' \"$X\"",
        b"printf 'a\\nb' | sort -r",
        b"printf x > f && cat < f",
        "printf '%s' '🙂'".encode(),
        b"printf '%s' 'caf\xe9'",
        b"printf %s a\\ b",
        b"printf '%s' `printf x`",
        b"printf '%s' 'a #: b'",
    ],
)
def test_lines_mean_what_they_mean_to_sh(program: Program, line: bytes) -> None:
    expected = subprocess.run(["sh", "-c", line], capture_output=True, cwd=program.directory, check=True).stdout
    assert program.run("--gpus", "0", stdin=line + b"\n").stdout == expected


def test_a_line_that_starts_with_a_dash_is_no_option_of_the_shell(program: Program) -> None:
    done = program.run("--gpus", "0", stdin="-x\n+x\n")
    assert done.stderr.count(b"failed with exit code 127") == 2


@pytest.mark.parametrize("shell", ["/bin/sh", "bash", "zsh"])
def test_a_job_runs_in_the_shell_that_was_asked_for(program: Program, shell: str) -> None:
    needs(shell)
    (program.directory / "env.sh").write_text("GREETING=hello\n")
    word = "." if shell == "/bin/sh" else "source"
    done = program.run("--gpus", "0", "--shell", shell, stdin=f"{word} ./env.sh; echo $GREETING\n-c\n")
    assert done.stdout == b"hello\n"
    assert b"job 2 (line 2) failed with exit code 127" in done.stderr


def test_a_job_the_system_cannot_start_is_an_error_with_its_line_and_the_others_run(program: Program) -> None:
    done = program.run("--gpus", "0", stdin=b"echo 1\necho " + b"x" * 131_071 + b"\necho a\0b\necho 4\n")
    assert done.stdout == b"1\n4\n"
    assert done.returncode == 2
    assert b"line 2: not started: the command has 131,076 bytes; the system accepts at most 131,071" in done.stderr
    assert b"line 3: not started: the command contains a NUL byte" in done.stderr
    assert b"2 succeeded, 0 failed, 0 timed out, 2 not started" in done.stderr


def test_a_command_as_long_as_can_be_is_started(program: Program) -> None:
    line = b"echo $((1)) #" + b"x" * (131_071 - 13)
    assert program.run("--gpus", "0", stdin=line).stdout == b"1\n"


def test_jobs_never_see_the_queue(program: Program) -> None:
    done = program.run("--gpus", "0", stdin="cat\n" + "echo x\n" * 200)
    assert done.stdout == b"x\n" * 200
    assert done.returncode == 0


# Per-line options.


def test_options_stand_in_a_comment_and_the_file_still_is_a_shell_script(program: Program) -> None:
    script = """\
echo big $CUDA_VISIBLE_DEVICES      #: gpus=2 timeout=4h name=big
echo cpu $CUDA_VISIBLE_DEVICES      #: gpus=0 after=big
#: gpus=3
echo default $CUDA_VISIBLE_DEVICES
echo "a #: b"                       #: gpus=1
"""
    done = program.run("--gpus", "0 1 2", "--cpu-slots", "1", stdin=script)
    assert sorted(lines_of(done)) == ["a #: b", "big 0,1", "cpu -1", "default 0,1,2"]
    as_script = subprocess.run(["sh"], input=script.encode(), capture_output=True, check=True)
    assert len(as_script.stdout.splitlines()) == 4


def test_a_wrong_option_in_a_file_is_met_before_anything_starts(program: Program) -> None:
    path = program.directory / "jobs.txt"
    path.write_text("touch started\n" * 20 + "true #: gpu=1\n#: timeout=x\ntrue #: gpus=9\n" + "x #: a=1\n" * 20)
    for command in ([*SCHEDULER, "--gpus", "0", str(path)], ["sh", "-c", f"{' '.join(SCHEDULER)} --gpus 0 < {path}"]):
        done = subprocess.run(command, capture_output=True, cwd=program.directory, check=False)
        assert done.returncode == 2
        assert b"line 21" in done.stderr
        assert b"unknown option 'gpu'; did you mean gpus?" in done.stderr
        assert b"gpus=9: this run has only 1 GPU" in done.stderr
        assert b"and 13 more" in done.stderr
        assert not (program.directory / "started").exists()


def test_a_wrong_option_in_a_pipe_is_an_error_with_its_line_and_the_others_run(program: Program) -> None:
    done = program.run("--gpus", "0", stdin="echo 1\necho 2 #: gpu=1\necho 3\n")
    assert done.stdout == b"1\n3\n"
    assert done.returncode == 2
    assert b"line 2: not started: unknown option 'gpu'; did you mean gpus?" in done.stderr


def test_after_waits_for_the_named_job_and_a_failure_keeps_its_dependents_from_starting(program: Program) -> None:
    jobs = "sleep 0.2; echo first #: name=a\necho second #: after=a\nfalse #: name=b\necho never #: after=b name=c\n"
    done = program.run("--gpus", "0-3", stdin=jobs + "echo nor this #: after=c\n")
    assert lines_of(done) == ["first", "second"]
    assert done.returncode == 1
    assert b'job 4 "c" (line 4) was not started: job 3 "b" did not succeed: echo never' in done.stderr
    assert b"2 succeeded, 1 failed, 0 timed out, 2 not started" in done.stderr


# Environment of a job.


WHOLE = "GPU-1ab2c3d4-0000-1111-2222-333344445555"


def test_a_job_knows_its_gpus_and_itself(program: Program) -> None:
    show = "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $SGS_JOB $SGS_NAME. $SGS_ATTEMPT $SGS_SLOT"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDA")}
    done = program.run(
        "--gpus",
        f"3,{WHOLE}",
        "--cpu-slots",
        "1",
        stdin=f"{show} #: gpus=2 name=n\n{show} #: gpus=0\n",
        env=environment,
    )
    assert sorted(lines_of(done)) == ["-1 PCI_BUS_ID 2 . 1 2", f"3,{WHOLE} PCI_BUS_ID 1 n. 1 0"]
    environment |= {"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "CUDA_VISIBLE_DEVICES": "7", "SGS_NAME": "x"}
    done = program.run("--gpus", "3", stdin=show, env=environment)
    assert lines_of(done) == ["3 FASTEST_FIRST 1 . 1 0"]


def test_each_attempt_has_its_number_and_each_run_its_id(program: Program) -> None:
    done = program.run("--gpus", "0", "--retries", "2", stdin="echo $SGS_RUN $SGS_ATTEMPT; false\n")
    ids, attempts = zip(*(line.split() for line in lines_of(done)), strict=True)
    assert attempts == ("1", "2", "3")
    assert len(set(ids)) == 1
    other = program.run("--gpus", "0", stdin="echo $SGS_RUN\n")
    assert lines_of(other)[0] not in ids


# Exit codes.


def test_exit_codes_tell_the_truth(program: Program) -> None:
    assert program.run("--gpus", "0", stdin="true\n").returncode == 0
    assert program.run("--gpus", "0", stdin="").returncode == 0
    assert program.run("--gpus", "0", stdin="true\nfalse\n").returncode == 1
    assert program.run("--gpus", "0", stdin="exit 255\ntrue\n").returncode == 1
    assert program.run("--gpus", "0", stdin="kill -9 $$\ntrue\n").returncode == 1
    assert program.run("--gpus", "0", "--timeout", "0.1", stdin="sleep 100\n").returncode == 1
    assert program.run("--gpus", "0", "--timeout", "0.1", stdin="sleep 0.3 #: timeout=0\n").returncode == 0
    assert program.run("--gpus", "0", "--timeout", "0", stdin="sleep 0.1\n").returncode == 0
    assert program.run("--gpus", "x").returncode == 2
    assert program.run().returncode == 2


def test_a_bug_is_reported_as_one() -> None:
    broken = "import simple_gpu_scheduler.run.setup.build as a; a.files.new_run_id = None; "
    call = [SCHEDULER[0], "-c", broken + "from simple_gpu_scheduler.cli.main import simple_gpu_scheduler as s; s()"]
    done = subprocess.run([*call, "--gpus", "0"], input=b"true\n", capture_output=True, check=False)
    assert done.returncode == 3
    assert b"Traceback" in done.stderr
    assert b"this is a bug in the program, not a mistake of yours. Please report" in done.stderr


# Streams.


@pytest.mark.usefixtures("idle_gpus")
def test_jobs_own_stdout_and_the_programs_words_go_to_stderr(program: Program) -> None:
    done = program.run("--gpus", "0", stdin="echo out; echo err >&2\n")
    assert done.stdout == b"out\n"
    first, second, third = done.stderr.decode().splitlines()
    assert first == "Processing command `echo out; echo err >&2` on gpu 0"
    assert second == "err"
    assert re.fullmatch(r"1 succeeded, 0 failed, 0 timed out, 0 not started in \d\.\d s", third)


def test_every_end_that_is_no_success_has_a_line(program: Program) -> None:
    done = program.run("--gpus", "0", "--retries", "1", stdin="true\n\nexit 3\nkill -9 $$\n")
    ends = [line for line in done.stderr.decode().splitlines() if line.startswith("job")]
    shown = [re.sub(r"\d\.\d s", "T", line) for line in ends]
    assert shown == [
        "job 2 (line 3) failed with exit code 3 after T, retrying: exit 3",
        "job 2 (line 3) failed with exit code 3 after T: exit 3",
        "job 3 (line 4) was killed by SIGKILL after T, retrying: kill -9 $$",
        "job 3 (line 4) was killed by SIGKILL after T: kill -9 $$",
    ]


@pytest.mark.usefixtures("idle_gpus")
def test_quiet_leaves_failures_only_and_verbose_adds_successes(program: Program) -> None:
    quiet = program.run("--gpus", "0", "-q", stdin="true\nfalse\n").stderr.decode().splitlines()
    assert [line[:12] for line in quiet] == ["job 2 (line "]
    verbose = program.run("--gpus", "0", "-v", stdin="true\n").stderr.decode().splitlines()
    assert verbose[0] == "Processing command `true` on gpu 0: job 1 (line 1), attempt 1, slot 0"
    assert verbose[1].startswith("job 1 (line 1) succeeded after ")


def test_a_command_cannot_move_the_cursor_or_hide_its_end(program: Program) -> None:
    done = program.run(
        "--gpus", "0", "-0", stdin="true \x1b[2J\u202e\xff\n\ttrue\0".encode("latin-1", "ignore") + b"\0"
    )
    assert b"\x1b" not in done.stderr
    assert b"true \\x1b[2J\\xff\\n\\ttrue` on gpu 0" in done.stderr


def test_a_very_long_command_is_cut_where_it_is_shown(program: Program) -> None:
    done = program.run("--gpus", "0", stdin=b": " + b"x" * 100_000 + b"\n")
    assert len(done.stderr) < 2000
    assert "…".encode() in done.stderr


# Job log.


def test_the_job_log_has_gnu_parallels_columns(program: Program) -> None:
    jobs = "true\nexit 3\nkill -9 $$\nsleep 100 #: timeout=0.1\nfalse #: retries=2\necho a\tb\n"
    log = program.directory / "log.tsv"
    log.write_text("a command file")
    done = program.run("--gpus", "0", "--joblog", str(log), stdin=jobs)
    assert (done.returncode, log.read_text()) == (2, "a command file")
    assert b"is not a job log and is not overwritten" in done.stderr
    log.unlink()
    program.run("--gpus", "0", "--joblog", str(log), stdin="true\n" * 9)
    program.run("--gpus", "0", "--joblog", str(log), stdin=jobs)
    header, *rows = [line.split("\t", 8) for line in log.read_text().splitlines()]
    assert header == ["Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command"]
    assert [(row[0], row[6], row[7], row[8]) for row in rows] == [
        ("1", "0", "0", "true"),
        ("2", "3", "0", "exit 3"),
        ("3", "0", "9", "kill -9 $$"),
        ("4", "-1", "15", "sleep 100"),
        ("5", "1", "0", "false"),
        ("6", "0", "0", "echo a\tb"),
    ]
    assert all(row[1] == ":" and re.fullmatch(r"\d+\.\d{3}", row[2]) for row in rows)
    assert all(re.fullmatch(r" *\d+\.\d{3}", row[3]) and len(row[3]) == 10 for row in rows)


def test_the_job_log_is_for_its_owner_and_a_row_stays_a_line(program: Program) -> None:
    program.run("--gpus", "0", "-0", "--joblog", "log.tsv", stdin="echo a\necho b\0")
    log = program.directory / "log.tsv"
    assert log.stat().st_mode & 0o777 == 0o600
    log.chmod(0o644)
    program.run("--gpus", "0", "-0", "--joblog", "log.tsv", stdin="echo a\necho b\0")
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.read_bytes().splitlines()[1].endswith(b"\techo a\0echo b")


def test_a_job_log_that_cannot_be_written_is_met_before_anything_starts(program: Program) -> None:
    done = program.run("--gpus", "0", "--joblog", "no/such/log", stdin="echo x\n")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"cannot write the job log no/such/log: No such file or directory" in done.stderr


def test_a_full_disk_under_the_job_log_stops_no_job(program: Program) -> None:
    done = program.run("--gpus", "0", "--joblog", "/dev/full", stdin="echo x\n")
    assert (done.returncode, done.stdout) == (2, b"")
    sizes = "ulimit -f 1; trap '' XFSZ; exec " + " ".join([*SCHEDULER, "--gpus", "0", "--joblog", "log"])
    done = subprocess.run(
        ["sh", "-c", sizes],
        input=b"true " + b"x" * 800 + b"\necho x\n",
        capture_output=True,
        cwd=program.directory,
        env=UNMEASURED,
        check=False,
    )
    assert done.stdout == b"x\n"
    assert done.returncode == 1
    said = b"cannot write the job log log: File too large; jobs continue, and it is tried again\n"
    assert done.stderr.count(said) == 1
    assert b"cannot write the job log log: File too large; 2 rows missing from it\n" in done.stderr


# The command.


def test_several_files_are_read_in_order(program: Program) -> None:
    (program.directory / "a.txt").write_text("echo a")
    (program.directory / "b.txt").write_text("false\n")
    done = program.run("--gpus", "0", "a.txt", "b.txt", "-", stdin="echo c\n")
    assert lines_of(done) == ["a", "c"]
    assert b"job 2 (line 1 of b.txt) failed" in done.stderr


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["nofile"], b"cannot read nofile: No such file or directory"),
        (["."], b"cannot read .: it is a directory"),
        (["--shell", "nosuchshell"], b"--shell nosuchshell: no such program, or not executable"),
        (["--shell", "/etc/passwd"], b"--shell /etc/passwd: no such program, or not executable"),
        (["--chdir", "nowhere"], b"--chdir nowhere: No such file or directory"),
        (["--jobs-per-gpu", "0"], b"0 is not in the range"),
        (["--timeout", "1y"], b"'1y' is not a duration; write 90, 90s, 5m, 1h30m or 2d"),
        (["--halt", "often"], b"'often' is not a halt condition; write never, soon,fail=3 or now,fail=10%"),
        (["--policy", "lifo"], b"unknown policy 'lifo'"),
    ],
)
def test_bad_options_are_met_before_anything_starts(program: Program, args: list[str], sentence: bytes) -> None:
    done = program.run("--gpus", "0", *args, stdin="echo x\n")
    assert (done.returncode, done.stdout) == (2, b"")
    assert sentence in done.stderr


def test_jobs_run_in_the_directory_that_was_named_and_files_are_found_from_here(program: Program) -> None:
    (program.directory / "sub").mkdir()
    (program.directory / "a.txt").write_text("pwd")
    done = program.run("--gpus", "0", "--chdir", "sub", "--joblog", "log", "a.txt")
    assert lines_of(done) == [str(program.directory / "sub")]
    assert (program.directory / "log").exists()


def test_a_dry_run_shares_as_a_run_does(program: Program) -> None:
    jobs = "echo a1  #: label=a\necho a2  #: label=a\necho b1  #: label=b\n"
    done = program.run("--gpus", "0", "--policy", "fair", "--dry-run", stdin=jobs)
    assert done.stdout == b"gpu 0: echo a1\ngpu 0: echo b1\ngpu 0: echo a2\n"


def test_a_dry_run_prints_what_would_run_where_and_runs_nothing(program: Program) -> None:
    jobs = "touch ran\ntrue #: gpus=2\nb #: gpus=0\nc #: retries=2\n"
    done = program.run("--gpus", "0 1", "--dry-run", "--delay", "9", "--joblog", "log", stdin=jobs)
    assert lines_of(done) == ["gpu 0: touch ran", "cpu: b", "gpus 0,1: true", "gpu 0: c"]
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(program.directory.iterdir()) == []


def test_a_dry_run_escapes_control_characters_on_a_terminal_and_changes_no_byte_elsewhere(program: Program) -> None:
    nasty = "echo \x1b[2J\x1b]0;title\x07 \x9b1A\r \u202e é \t".encode() + b"\xff; true"
    (program.directory / "jobs").write_bytes(nasty + b"\n")
    args = ("--gpus", "0", "--dry-run", "jobs")
    assert program.run(*args).stdout == b"gpu 0: " + nasty + b"\n"

    ours, terminal = os.openpty()
    assert (
        program.run(*args, capture_output=False, stdout=terminal, env=os.environ | {"PYTHONUTF8": "1"}).returncode == 0
    )
    os.close(terminal)
    shown = os.read(ours, 65536)
    os.close(ours)
    escaped = r"gpu 0: echo \x1b[2J\x1b]0;title\x07 \x9b1A\r \u202e é \t\xff; true"
    assert shown.decode() == f"{escaped}\r\n"


def test_output_whose_reader_has_gone_ends_quietly() -> None:
    for args in (["--dry-run", "--gpus", "0"], ["--help"]):
        command = " ".join([*SCHEDULER, *args])
        done = subprocess.run(
            ["sh", "-c", f"yes true | head -100000 | {command} | head -1"], capture_output=True, check=True
        )
        assert done.stderr == b""
        assert len(done.stdout.splitlines()) == 1


def test_head_on_the_output_of_jobs_ends_those_that_print_and_loses_no_result(program: Program) -> None:
    command = " ".join([*SCHEDULER, "--gpus", "0", "--joblog", "log"])
    jobs = "echo first\nyes\nsleep 0.1; touch ran\n"
    done = subprocess.run(
        ["sh", "-c", f"{command} | head -1"],
        input=jobs.encode(),
        capture_output=True,
        cwd=program.directory,
        check=False,
    )
    assert done.stdout == b"first\n"
    assert (program.directory / "ran").exists()
    assert re.search(rb"job 2 \(line 2\) (was killed by SIGPIPE|failed with exit code 141)", done.stderr)
    assert len((program.directory / "log").read_text().splitlines()) == 4


def test_starts_are_apart_by_the_delay(program: Program) -> None:
    program.run("--gpus", "0 1", "--delay", "0.3", "--joblog", "log", stdin="true\n" * 3)
    rows = (program.directory / "log").read_text().splitlines()[1:]
    first, second, third = sorted(float(row.split("\t")[2]) for row in rows)
    assert second - first > 0.25
    assert third - second > 0.25


def test_two_jobs_share_a_gpu_when_asked_to(program: Program) -> None:
    """Each of the two waits for the other, so they end only when they run side by side."""
    wait = "touch %d; while [ ! -e %d ]; do sleep 0.01; done\n"
    done = program.run("--gpus", "0", "--jobs-per-gpu", "2", "--timeout", "60", stdin=wait % (1, 2) + wait % (2, 1))
    assert done.returncode == 0
    assert done.stderr.count(b"on gpu 0") == 2


def test_halt_gives_up(program: Program) -> None:
    done = program.run("--gpus", "0", "--halt", "soon,fail=2", stdin="false\n" * 50)
    assert done.returncode == 1
    assert b"--halt: 2 jobs did not succeed: stopping; no new jobs, nothing is running" in done.stderr
    assert b"0 succeeded, 2 failed, 0 timed out, 48 not started" in done.stderr
    done = program.run("--gpus", "0 1", "--halt", "now,fail=1", stdin="sleep 1000\nfalse\n")
    assert done.returncode == 1
    assert b"job 1 (line 1) was interrupted after" in done.stderr
    assert b"0 succeeded, 1 failed, 0 timed out, 0 not started, 1 interrupted" in done.stderr


def test_priority_starts_the_most_important_first(program: Program) -> None:
    jobs = "echo a\necho b #: priority=1\necho c #: priority=2\n"
    (program.directory / "jobs").write_text(jobs)
    assert lines_of(program.run("--gpus", "0", "--policy", "priority", "jobs")) == ["c", "b", "a"]


def test_help_shows_the_options_in_groups_with_examples(program: Program) -> None:
    for flag in ("-h", "--help"):
        shown = program.run(flag).stdout.decode()
        for part in (
            "GPUs:",
            "Failures and time limits:",
            "Commands (see COMMAND --help):",
            "Examples:",
            "--gpus GPU...",
            "-h, --help",
        ):
            assert part in shown
    assert program.run("--version").stdout.startswith(b"simple_gpu_scheduler 0.")


def test_a_mistake_in_what_is_typed_shows_the_way_out(program: Program) -> None:
    assert re.search(rb"^simple_gpu_scheduler: NVML was not found .* for example: --gpus 0 1\n$", program.run().stderr)
    assert b"--gpus must be followed by GPU...; for example" in program.run("--gpus").stderr
    assert b"--gpus must be followed by GPU..., not 'a.txt'; for example" in program.run("--gpus", "a.txt").stderr
    assert b"--gpus: GPU 1 is given twice" in program.run("--gpus", "1", "--gpus", "0-2").stderr
    assert re.fullmatch(
        rb"simple_gpu_scheduler: No such option.*--gpu.* \(see simple_gpu_scheduler --help\)\n",
        program.run("--gpu", "1").stderr,
    )


def test_completion_is_clicks(program: Program) -> None:
    shell = {
        "_SIMPLE_GPU_SCHEDULER_COMPLETE": "bash_complete",
        "COMP_WORDS": "simple_gpu_scheduler --re",
        "COMP_CWORD": "1",
    }
    done = program.run(env=os.environ | shell)
    assert done.stdout.split() == [
        b"plain,--" + name for name in (b"retries", b"retry-delay", b"resume", b"resume-failed")
    ]


def test_thousands_of_lines_of_which_every_third_fails(program: Program) -> None:
    jobs = "true\ntrue\nfalse\n" * 1000 + "true\n"
    done = program.run("--gpus", "0-7", "-q", "--quarantine", "0", "--joblog", "log", stdin=jobs)
    assert done.returncode == 1
    rows = [line.split("\t") for line in (program.directory / "log").read_text().splitlines()[1:]]
    assert sorted(int(row[0]) for row in rows) == list(range(1, 3002))
    assert sorted(int(row[0]) for row in rows if row[6] == "1") == list(range(3, 3001, 3))
    assert len(done.stderr.splitlines()) == 1000


def test_a_job_that_prints_a_hundred_megabytes() -> None:
    command = [*SCHEDULER, "--gpus", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"head -c 100000000 /dev/zero\n")
        process.stdin.close()
        size = 0
        while chunk := process.stdout.read(1 << 20):
            size += len(chunk)
    assert (size, process.returncode) == (100_000_000, 0)


def test_the_example_of_the_readme_runs_as_it_stands(program: Program) -> None:
    root = ROOT
    commands = (root / "examples/gpu_commands.txt").read_text().replace("examples/", f"{root}/examples/")
    done = program.run("--gpus", "0 1 2", stdin=commands)
    assert done.returncode == 0
    result = json.loads((program.directory / "results/lr-0.1.json").read_text())
    assert result["lr"] == 0.1
    assert result["accuracy"] > 0.9


COMMAND = " ".join(SCHEDULER)


def sh(program: Program, script: str, shell: str = "sh", **settings) -> "subprocess.CompletedProcess[str]":
    settings = {"capture_output": True, "text": True, "timeout": 60, "cwd": program.directory} | settings
    return subprocess.run([shell, "-c", script], check=False, **settings)


def test_a_job_log_that_is_a_pipe_or_the_input_is_refused(program: Program) -> None:
    os.mkfifo(program.directory / "pipe")
    assert (
        "it is not a regular file"
        in sh(program, f"(sleep 2 < pipe &) ; {COMMAND} --gpus 0 --joblog pipe </dev/null").stderr
    )
    (program.directory / "jobs").write_text("echo x\n")
    for source in ("jobs", "< jobs"):
        done = sh(program, f"{COMMAND} --gpus 0 --joblog jobs {source}")
        assert (done.returncode, done.stdout) == (2, "")
        assert "that is the file that the commands are read from" in done.stderr
    assert (program.directory / "jobs").read_text() == "echo x\n"
    assert sh(program, f"{COMMAND} --gpus 0 --joblog /dev/null < jobs").returncode == 0
