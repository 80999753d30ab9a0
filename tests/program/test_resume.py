"""`--resume` as a user meets it: the real program, killed, stopped and started again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.scheduling.policies.learned import Weights, show_weights
from tests.conftest import SCHEDULER, UNMEASURED, Program, has_text, is_alive, until
from tests.support.processes import children_of, command_line, kill_if_alive, read

RAN = "echo $SGS_JOB.$SGS_ATTEMPT >> ran"
UNTIL_GO = "until [ -e go ]; do sleep 0.02; done"
HOLD = f"{RAN}; {UNTIL_GO}"
OURS = ("--gpus", "0", "-q")
NOBODY = 65534
NOTHING = subprocess.DEVNULL
Done = subprocess.CompletedProcess[str]


class Scene:
    """A directory with `jobs.txt`, and runs of it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.directory = program.directory
        self.runs = program.directory / "state" / "simple_gpu_scheduler" / "runs"
        self.started: list[int] = []

    def lines(self, *lines: str, name: str = "jobs.txt") -> str:
        (self.directory / name).write_text("".join(f"{line}\n" for line in lines))
        return name

    def run(self, *args: str, stdin: object = NOTHING, **settings) -> Done:
        settings = {"cwd": self.directory, "timeout": 120, "capture_output": True, "text": True} | settings
        return subprocess.run([*SCHEDULER, *args], stdin=stdin, check=False, **settings)

    def resume(self, *args: str, **settings) -> Done:
        return self.run("--resume", *args, "-q", **settings)

    def start(self, *args: str, **settings) -> "subprocess.Popen[bytes]":
        nothing = subprocess.DEVNULL
        return self.program.start(*args, env=UNMEASURED, **{"stdin": nothing, "stderr": nothing, **settings})

    def killed(
        self, *lines: str, args: tuple[str, ...] = OURS, name: str = "jobs.txt", when: str = ".1\n", keeper_too=False
    ) -> None:
        """A run of these lines whose scheduler is killed once `ran` has this text and all lines were read. Its jobs are
        killed too, as by a power cut, if its keeper is.
        """
        process = self.start(*args, self.lines(*lines, name=name))
        until(has_text(self.directory / "ran", when), f"ran has {when}")
        until(has_text(self.journals()[-1], '"input ended"'), "all lines are read")
        children = [] if not keeper_too else children_of(process.pid)
        process.kill()
        process.wait()
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        if keeper_too:
            until(lambda: not self.processes(kill=True), "all is gone")

    def processes(self, *, kill: bool = False) -> list[int]:
        """All of these runs; they are known by an environment that is this test's own."""
        mark = b"XDG_STATE_HOME=%s\0" % os.fsencode(self.directory / "state")
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        found = [pid for pid in pids if mark in read(pid, "environ") and pid != os.getpid()]
        for pid in found if kill else ():
            kill_if_alive(pid)
        return found

    def ran(self) -> list[str]:
        path = self.directory / "ran"
        return path.read_text().split() if path.exists() else []

    def go(self) -> None:
        (self.directory / "go").touch()

    def journals(self) -> list[Path]:
        return sorted(self.runs.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)

    def records(self, event: str) -> list[dict]:
        lines = self.journals()[-1].read_text().splitlines() if self.journals() else []
        return [record for record in map(json.loads, filter(None, lines)) if record["event"] == event]


@pytest.fixture
def scene(program: Program) -> Iterator[Scene]:
    scene = Scene(program)
    yield scene
    until(lambda: not [pid for pid in scene.processes(kill=True) if is_alive(pid)], "all is gone")


def last_line(done: Done) -> str:
    return done.stderr.splitlines()[-1] if done.stderr else ""


# What is run again, and what is not.


def test_what_succeeded_is_not_run_again_and_what_was_running_or_waiting_is(scene: Scene) -> None:
    scene.killed(RAN, f"{RAN}; [ -e go ] || exec sleep 100", RAN, when="2.1\n", keeper_too=True)
    scene.go()
    assert scene.resume().returncode == 0
    assert sorted(scene.ran()) == ["1.1", "2.1", "2.2", "3.1"]


def test_a_run_that_finished_runs_nothing_and_its_exit_code_tells_the_truth(scene: Scene) -> None:
    for lines, code in (((RAN, RAN), 0), ((RAN, f"{RAN}; exit 7"), 1), ((RAN, "x #: nonsense=1"), 2)):
        name = scene.lines(*lines)
        with (scene.directory / name).open("rb") as file:
            data = file.read()
        assert scene.program.run(*OURS, stdin=data).returncode == code
        ran = scene.ran()
        done = scene.resume(scene.journals()[-1].stem)  # by name: ids of one second are in no order
        assert (done.returncode, scene.ran()) == (code, ran)


def test_what_failed_stays_failed_unless_it_is_asked_for(scene: Scene) -> None:
    lines = (f"{RAN}; false", f"{RAN}; sleep 100 #: timeout=2", f"{RAN}; kill -9 $$", f"{RAN} #: name=a", RAN)
    name = scene.lines(*lines, f"{RAN}; false #: name=b", f"{RAN} #: after=b", f"{RAN} #: after=a")
    assert scene.run(*OURS, name).returncode == 1
    first = scene.ran()
    assert "7.1" not in first
    assert scene.resume().returncode == 1
    assert scene.ran() == first
    assert scene.run("--resume-failed", "-q").returncode == 1
    assert scene.ran()[len(first) :] == ["1.2", "2.2", "3.2", "6.2"]


def test_a_dropped_job_is_run_when_what_it_waited_for_succeeds_at_last(scene: Scene) -> None:
    scene.lines(f"{RAN}; [ -e go ] #: name=a", f"{RAN} #: after=a name=b", f"{RAN} #: after=b")
    assert scene.run(*OURS, "jobs.txt").returncode == 1
    scene.go()
    assert scene.run("--resume-failed", "-q").returncode == 0
    assert scene.ran() == ["1.1", "1.2", "2.1", "3.1"]


def test_after_holds_across_a_resume(scene: Scene) -> None:
    lines = (f"{RAN} #: name=done", f"{HOLD} #: name=running", f"{RAN} #: after=done,running", f"{RAN} #: after=done")
    scene.killed(*lines, when="2.1\n", args=("--gpus", "0", "-q"))
    process = scene.start("--resume", "--gpus", "1")
    until(lambda: "4.1" in scene.ran())
    assert "3.1" not in scene.ran()
    scene.go()
    assert process.wait(timeout=120) == 0
    assert scene.ran() == ["1.1", "2.1", "4.1", "3.1"]


@pytest.mark.parametrize("policy", ["sjf", "learned:w.json"])
def test_another_policy_may_be_typed_anywhere(scene: Scene, policy: str) -> None:
    lines = (HOLD, f"{RAN} #: time=9", f"{RAN} #: time=5")
    scene.killed(*lines, args=(*OURS, "--policy", "aged", "--ageing", "0"))
    scene.go()
    elsewhere = scene.directory / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "w.json").write_text(show_weights(Weights()))
    run = next(scene.runs.glob("*.jsonl")).stem
    done = scene.run("--resume", run, "-q", "--policy", policy, cwd=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert scene.ran() == ["1.1", "3.1", "2.1"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_those_behind_a_job_that_a_stop_has_ended_wait_with_it(scene: Scene, how: signal.Signals) -> None:
    lines = (f"{HOLD} #: name=first", f"{RAN} #: after=first name=second", f"{RAN} #: after=second")
    process = scene.start(*OURS, scene.lines(*lines))
    until(lambda: scene.ran() == ["1.1"], "it runs")
    until(lambda: process.poll() is not None or process.send_signal(how), "it ends")
    scene.go()
    assert scene.resume().returncode == 0
    assert scene.ran() == ["1.1", "1.2", "2.1", "3.1"]


def test_an_interrupted_attempt_uses_up_no_retry_and_attempts_are_counted_on(scene: Scene) -> None:
    args = (*OURS, "--retries", "2")
    scene.killed(f"{RAN}; [ $SGS_ATTEMPT = 2 ] && exec sleep 100; false", args=args, when="1.2\n", keeper_too=True)
    assert scene.resume().returncode == 1
    assert scene.ran() == ["1.1", "1.2", "1.3", "1.4"]  # of which the second tells nothing


def test_a_job_that_failed_while_there_was_no_scheduler_has_its_retries_too(scene: Scene) -> None:
    scene.killed(f"{RAN}; sleep 0.3; [ $SGS_ATTEMPT = 2 ]", args=(*OURS, "--retries", "1"))
    until(lambda: scene.records("job exited"), "the keeper has written its end")
    assert scene.resume().returncode == 0
    assert scene.ran() == ["1.1", "1.2"]


def test_a_job_that_waited_for_its_retry_has_no_more_of_them_after_ctrl_c(scene: Scene) -> None:
    process = scene.start(*OURS, "--retries", "1", "--retry-delay", "100", scene.lines(f"{RAN}; false"))
    until(lambda: scene.records("job ended"))
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    assert scene.resume("--retry-delay", "0").returncode == 1
    assert scene.ran() == ["1.1", "1.2"]


# Which run.


def test_the_newest_unfinished_run_of_this_directory_is_chosen(scene: Scene) -> None:
    for name in ("older", "newer"):
        command = f"echo {name}.$SGS_ATTEMPT >> ran; [ -e go ] || exec sleep 99"
        scene.killed(command, when=name, name=f"{name}.txt", keeper_too=True)
    assert scene.run(*OURS, scene.lines("echo finished >> ran")).returncode == 0
    elsewhere = scene.directory / "elsewhere"
    elsewhere.mkdir()
    assert "no run to resume in this directory" in scene.resume(cwd=elsewhere).stderr
    scene.go()
    assert scene.resume().returncode == 0
    assert scene.ran() == ["older.1", "newer.1", "finished", "newer.2"]
    assert scene.resume().returncode == 0
    assert scene.ran()[4:] == ["older.2"]


def test_a_run_is_named_by_its_id_or_a_prefix_and_resumes_in_its_own_directory(scene: Scene) -> None:
    elsewhere = scene.directory / "elsewhere"
    elsewhere.mkdir()
    for word in (slice(None), slice(0, -1), slice(0, -3)):
        scene.killed(f"pwd >> ran; {RAN}; [ -e go ] || exec sleep 99", keeper_too=True)
        scene.go()
        done = scene.resume(scene.journals()[-1].stem[word], cwd=elsewhere)
        assert done.returncode == 0, done.stderr
        assert scene.ran() == [str(scene.directory), "1.1", str(scene.directory), "1.2"]
        (scene.directory / "ran").unlink()
        (scene.directory / "go").unlink()


@pytest.mark.parametrize(
    "words",
    ["--resume-failed RUN", "--resume-failed=RUN", "--resume RUN --resume-failed", "--resume-failed --resume RUN"],
)
def test_a_run_is_named_after_resume_failed_as_after_resume(scene: Scene, words: str) -> None:
    assert scene.run(*OURS, scene.lines(f"{RAN}; [ -e go ]")).returncode == 1
    run = scene.journals()[0].stem
    assert scene.run(*OURS, scene.lines("exit 3", name="newer.txt")).returncode == 1
    scene.go()
    done = scene.run(*words.replace("RUN", run).split(), "-q")
    assert (done.returncode, done.stderr, scene.ran()) == (0, "", ["1.1", "1.2"])


def test_files_after_resume_failed_are_files(scene: Scene) -> None:
    assert scene.run(*OURS, scene.lines(f"{RAN}; [ -e go ]")).returncode == 1
    scene.go()
    assert scene.run("--resume-failed", scene.lines(RAN, name="more"), "-q").returncode == 0
    assert scene.ran() == ["1.1", "1.2", "2.1"]


def test_two_different_runs_are_refused(scene: Scene) -> None:
    done = scene.run("--resume", "2b4a", "--resume-failed", "c0ff")
    assert done.returncode == 2
    assert "two runs are given, --resume 2b4a and --resume-failed c0ff; choose one" in done.stderr


@pytest.mark.parametrize("newer", [b"x #: mem=10\n", b"true\n", b"true\nx #: mem=10\n"])
def test_a_newer_run_with_nothing_to_retry_hides_no_failed_one(scene: Scene, newer: bytes) -> None:
    assert scene.run("--gpus", "0", scene.lines(f"{RAN}; [ -e go ]")).returncode == 1
    sweep = scene.journals()[0].stem
    scene.program.run(*OURS, stdin=newer)
    scene.go()
    done = scene.run("--resume-failed")
    assert f"resuming run {sweep}: 0 succeeded, 1 waiting\n" in done.stderr
    assert (done.returncode, scene.ran()) == (0, ["1.1", "1.2"])


def test_a_refused_run_is_not_the_newest_to_look_at(scene: Scene) -> None:
    assert scene.run(*OURS, "--output", "files", scene.lines("echo of the sweep; exit 3")).returncode == 1
    assert scene.program.run(*OURS, stdin=b"x #: mem=10\n").returncode == 2
    assert "of the sweep" in scene.run("logs", "--failed").stdout
    assert scene.run("report").stdout.startswith(f"run {scene.journals()[0].stem}: finished with exit code 1")
    assert "refused" in scene.run("history").stdout


@pytest.mark.parametrize("option", ["--resume", "--resume-failed"])
def test_a_word_that_is_no_file_is_a_run(scene: Scene, option: str) -> None:
    assert scene.run(*OURS, scene.lines(RAN)).returncode == 0
    listed = "list runs with: simple_gpu_scheduler history"
    assert f"no run matches 'nosuchrun'; {listed}" in scene.run(option, "nosuchrun").stderr
    assert f"no run matches 'job.txt', and there is no such file; {listed}" in scene.run(option, "job.txt").stderr
    assert scene.ran() == ["1.1"]


def test_a_file_that_is_named_from_another_directory_is_that_directorys(scene: Scene) -> None:
    elsewhere = scene.directory / "elsewhere"
    elsewhere.mkdir()
    scene.run(*OURS, scene.lines(RAN))
    (elsewhere / "more.txt").write_text(f"{RAN} # more\n")
    done = scene.resume(scene.journals()[-1].stem, "more.txt", "--joblog", "log.tsv", cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert scene.ran() == ["1.1", "2.1"]
    assert (elsewhere / "log.tsv").exists()


@pytest.mark.parametrize("named", ["--resume --journal kept.jsonl", "--resume kept.jsonl", "--resume ../x/kept.jsonl"])
def test_a_journal_that_was_put_elsewhere_is_resumed_by_its_name(scene: Scene, named: str) -> None:
    (scene.directory / "x").mkdir()
    (scene.directory / "x" / "kept.jsonl").touch()
    (scene.directory / "x" / "kept.jsonl").unlink()
    scene.lines(f"{RAN}; exit 3", name="x/jobs.txt")
    args = (*OURS, "--journal", "x/kept.jsonl", "x/jobs.txt")
    assert scene.run(*args).returncode == 1
    assert "that file exists" in scene.run(*args).stderr
    done = scene.run(*named.split(), "--resume-failed", "--chdir", "/tmp", cwd=scene.directory / "x")
    assert "keeper" not in done.stderr
    assert done.returncode == 1, done.stderr
    kept = (scene.directory / "x" / "kept.jsonl").read_text()
    assert kept.count('"event":"job started"') == 2


def test_resume_without_a_journal_is_a_mistake(scene: Scene) -> None:
    for args in (("--resume", "--no-journal"), ("--resume-failed", "--dry-run")):
        done = scene.run(*args)
        assert done.returncode == 2
        assert done.stderr.startswith("simple_gpu_scheduler: --resume needs a journal")


# The command line of the run, and what is typed now.


def test_the_options_of_the_run_count_again_and_those_typed_now_override_them(scene: Scene) -> None:
    shell = scene.directory / "shell"
    shell.write_text('#!/bin/sh\necho shell >> used\nexec /bin/sh "$@"\n')
    shell.chmod(0o755)
    (scene.directory / "jobs.txt").write_bytes(
        f"echo $CUDA_VISIBLE_DEVICES >> gpus; {RAN}\nexit 1\0echo 'two\nlines' >> out\0".encode()
    )
    args = ("--gpus", "5", "--retries", "1", "--shell", "./shell", "-0", "--joblog", "log.tsv", "-q", "jobs.txt")
    assert scene.run(*args).returncode == 1
    rows = (scene.directory / "log.tsv").read_text()
    assert scene.run("--resume-failed", "-q").returncode == 1
    assert (scene.directory / "gpus").read_text() == "5\n" * 4  # a retry each time
    assert (scene.directory / "used").read_text() == "shell\n" * 5
    assert (scene.directory / "log.tsv").read_text().startswith(rows)
    assert (scene.directory / "log.tsv").read_text().count("Starttime") == 1
    assert scene.run("--resume-failed", "-q", "--gpus", "7", "--retries", "0", "--shell", "/bin/sh").returncode == 1
    assert (scene.directory / "gpus").read_text() == "5\n" * 4 + "7\n"
    assert (scene.directory / "used").read_text() == "shell\n" * 5
    assert (scene.directory / "out").read_text() == "two\nlines\n"


def test_the_timeout_of_the_run_counts_again(scene: Scene) -> None:
    scene.killed(f"{RAN}; exec sleep 99", args=(*OURS, "--timeout", "5"), keeper_too=True)
    done = scene.resume()
    assert (done.returncode, scene.ran()) == (1, ["1.1", "1.2"])
    assert "timed out" in done.stderr


# An input beside the journal.


def test_an_edited_and_reordered_file_just_works(scene: Scene) -> None:
    scene.killed(
        RAN,
        f"{RAN} # b",
        f"{RAN} # b",
        f"{RAN}; [ -e go ] || exec sleep 99 # c",
        f"{RAN} # d",
        when="4.1\n",
        keeper_too=True,
    )
    scene.lines(f"{RAN} # d", f"{RAN} # new", f"{RAN} # b", f"{RAN} # b", f"{RAN} # b", RAN, RAN)
    scene.go()
    assert scene.resume("jobs.txt").returncode == 0
    # 4 and 5 are the run's; 6 is new, 7 is the third of three where there were two, 8 the second of one.
    assert sorted(scene.ran()[4:]) == ["4.2", "5.1", "6.1", "7.1", "8.1"]


@pytest.mark.parametrize("change", ["overwritten", "deleted"])
def test_a_file_that_was_read_to_its_end_is_not_read_again_unless_it_is_given(scene: Scene, change: str) -> None:
    """It may hold the next commands by now, which belong to another run."""
    scene.killed(f"{RAN}; [ -e go ] || exec sleep 99", RAN, keeper_too=True)
    if change == "overwritten":
        scene.lines(f"{RAN} # of the next run")
    else:
        (scene.directory / "jobs.txt").unlink()
    scene.go()
    done = scene.resume()
    assert done.returncode == 0, done.stderr
    assert sorted(scene.ran()) == ["1.1", "1.2", "2.1"]


@pytest.mark.parametrize("way", ["stdin from a file", "stdin from a pipe", "FILE"])
def test_jobs_are_matched_by_content_whatever_input_they_come_from(scene: Scene, way: str) -> None:
    assert scene.run(*OURS, scene.lines(RAN, f"{RAN} #: retries=1", f"{RAN}; false")).returncode == 1
    (scene.directory / "jobs.txt").unlink()
    text = f"{RAN}; false\n{RAN} #: retries=2\n{RAN}\n{RAN} #:  retries=1\n"
    (scene.directory / "other.txt").write_text(text)
    if way == "FILE":
        done = scene.resume("other.txt")
    elif way == "stdin from a pipe":
        done = subprocess.run(
            [*SCHEDULER, "--resume", "-q"],
            input=text,
            text=True,
            capture_output=True,
            cwd=scene.directory,
            timeout=120,
            check=False,
        )
    else:
        with (scene.directory / "other.txt").open() as file:
            done = scene.resume(stdin=file)
    assert scene.ran() == ["1.1", "2.1", "3.1", "4.1"], done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("way", ["/dev/null", "an empty file", "true |", "a closed stdin"])
def test_an_empty_input_changes_nothing(scene: Scene, way: str) -> None:
    scene.killed(f"{RAN}; [ -e go ] || exec sleep 99", RAN, keeper_too=True)
    scene.go()
    redirected = {"/dev/null": "< /dev/null", "an empty file": "< empty", "true |": "", "a closed stdin": "<&-"}[way]
    (scene.directory / "empty").touch()
    first = "true | " if way == "true |" else ""
    command = f"{first}{' '.join(SCHEDULER)} --resume -q {redirected}"
    assert subprocess.run(["sh", "-c", command], cwd=scene.directory, timeout=120, check=False).returncode == 0
    assert sorted(scene.ran()) == ["1.1", "1.2", "2.1"]


def test_an_input_with_wrong_options_is_refused_before_anything_starts(scene: Scene) -> None:
    scene.killed(f"{RAN}; [ -e go ] || exec sleep 99", keeper_too=True)
    done = scene.resume(scene.lines("x #: nonsense=1", name="more.txt"))
    assert done.returncode == 2
    assert "nothing was started" in done.stderr
    assert scene.ran() == ["1.1"]
    scene.go()
    assert scene.resume().returncode == 0  # it is still there to be resumed
    assert scene.ran() == ["1.1", "1.2"]


def test_a_refused_line_is_not_refused_twice(scene: Scene) -> None:
    text = f"{RAN}\nx #: nonsense=1\n{RAN} # b\n"
    assert scene.program.run(*OURS, stdin=text).returncode == 2
    done = scene.program.run("--resume", stdin=text)
    assert b"nonsense" not in done.stderr
    assert (done.returncode, len(scene.records("line refused"))) == (2, 1)
    assert scene.ran() == ["1.1", "3.1"]


# Jobs that still run.


@pytest.mark.parametrize(("ending", "code"), [("exit 0", 0), ("exit 5", 1), ("kill -9 $$", 1)])
def test_a_job_that_still_runs_is_waited_for_and_its_exit_code_taken(scene: Scene, ending: str, code: int) -> None:
    scene.killed(f"{HOLD}; echo out; {ending}", RAN, args=("--gpus", "0", "--joblog", "log.tsv"))
    said = scene.directory / "said"
    with said.open("wb") as file:
        process = scene.start("--resume", stderr=file)
    until(has_text(said, "1 still running (job 1)"))
    other = scene.start("--gpus", "0", scene.lines("touch other", name="other.txt"), stderr=subprocess.PIPE)
    assert b"gpu 0" in (waits := other.stderr.readline() + other.stderr.readline()), waits
    assert not (scene.directory / "other").exists()
    assert scene.ran() == ["1.1"]
    scene.go()
    assert process.wait(timeout=120) == code
    assert other.wait(timeout=120) == 0
    assert scene.ran() == ["1.1", "2.1"]
    rows = [row.split("\t") for row in (scene.directory / "log.tsv").read_text().splitlines()[1:]]
    assert {row[0] for row in rows} == {"1", "2"}
    assert 0 < float(rows[0][3]) < 30


def test_a_job_that_ended_before_the_resume_is_in_the_job_log_once(scene: Scene) -> None:
    scene.killed(HOLD, RAN, args=(*OURS, "--joblog", "log.tsv"))
    scene.go()
    until(lambda: scene.records("job exited"))
    for _ in range(2):
        assert scene.resume().returncode == 0
    rows = (scene.directory / "log.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[0] for row in rows] == ["1", "2"]


def test_ctrl_c_twice_during_the_wait_ends_a_surviving_job_which_is_run_again_later(scene: Scene) -> None:
    scene.killed(f"{RAN}; [ -e go ] || exec sleep 100", args=("--gpus", "0"))
    said = scene.directory / "said"
    with said.open("wb") as file:
        process = scene.start("--resume", stderr=file)
    until(has_text(said, "still running"))
    process.send_signal(signal.SIGINT)
    until(has_text(said, "waiting for 1 running job"))
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    until(lambda: not scene.processes(), "all is gone")
    scene.go()
    assert scene.resume().returncode == 0
    assert scene.ran() == ["1.1", "1.2"]


def test_a_stubborn_surviving_job_is_killed_when_its_grace_is_over(scene: Scene) -> None:
    scene.killed(f"trap '' TERM; {RAN}; while :; do sleep 0.05; done", args=("--gpus", "0", "--grace", "0.3"))
    said = scene.directory / "said"
    with said.open("wb") as file:
        process = scene.start("--resume", stderr=file)
    until(has_text(said, "still running"))
    process.terminate()
    assert process.wait(timeout=120) == 143


def test_a_surviving_job_still_has_its_timeout(scene: Scene) -> None:
    scene.killed(f"{RAN}; exec sleep 100", args=(*OURS, "--timeout", "3"))
    assert scene.resume(timeout=120).returncode == 1
    assert scene.ran() == ["1.1"]


def test_two_schedulers_cannot_resume_one_run(scene: Scene) -> None:
    for _ in range(8):
        scene.killed(f"{RAN}; [ -e go ] || exec sleep 99", RAN, keeper_too=True)
        scene.go()
        run = scene.journals()[-1].stem
        all_of_them = [scene.start("--resume", run, stderr=subprocess.PIPE) for _ in range(3)]
        said = [process.communicate(timeout=120)[1].decode() for process in all_of_them]
        assert sorted(scene.ran()) == ["1.1", "1.2", "2.1"], said
        for process, words in zip(all_of_them, said, strict=True):
            assert process.returncode == 0 or "it is still running (see simple_gpu_scheduler status)" in words
        (scene.directory / "ran").unlink()
        (scene.directory / "go").unlink()


def test_a_resumed_run_is_resumed_again(scene: Scene) -> None:
    scene.killed(RAN, HOLD, f"{RAN}; [ -e go2 ] || exec sleep 99", RAN, when="2.1\n")
    process = scene.start("--resume", "--gpus", "1")
    until(lambda: "3.1" in scene.ran())
    process.kill()
    process.wait()
    process = scene.start("--resume")
    scene.go()
    (scene.directory / "go2").touch()
    until(lambda: scene.records("job exited"))
    for pid in scene.processes():
        if command_line(pid) == b"sleep\x0099\0":
            os.kill(pid, signal.SIGTERM)
    assert process.wait(timeout=120) == 1
    assert scene.ran() == ["1.1", "2.1", "3.1", "4.1"]


def test_a_job_that_needs_more_gpus_than_the_resumed_run_has_is_said_to_wait(scene: Scene) -> None:
    process = scene.start("--gpus", "0-2", "--ignore-occupancy", scene.lines(HOLD, f"{RAN}  #: gpus=3"))
    until(lambda: scene.ran() and scene.records("input ended"))
    process.terminate()
    process.wait(timeout=120)
    process = scene.start("--resume", "--gpus", "0,1", stderr=subprocess.PIPE)
    scene.go()
    assert process.stderr
    lines = iter(process.stderr.readline, b"")
    assert any(line.startswith(b"some waiting jobs need more GPUs, or larger ones, than this run") for line in lines)
    process.terminate()
    process.communicate(timeout=120)
    assert scene.run("--resume", "-q", "--gpus", "0-2", "--ignore-occupancy").returncode == 0
    assert scene.ran()[-1] == "2.1"


# Runs that were stopped.


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_a_signal_ended_is_run_again(scene: Scene, number: int, code: int) -> None:
    process = scene.start(*OURS, scene.lines(f"{RAN}; [ -e go ] || exec sleep 99", RAN))
    until(scene.ran)
    process.send_signal(number)
    if number == signal.SIGINT:
        until(lambda: scene.records("stop asked"))
        process.send_signal(number)
    assert process.wait(timeout=120) == code
    scene.go()
    assert scene.resume().returncode == 0
    assert scene.ran() == ["1.1", "1.2", "2.1"]


def test_the_first_ctrl_c_leaves_the_rest_to_be_resumed(scene: Scene) -> None:
    process = scene.start(*OURS, scene.lines(HOLD, RAN))
    until(scene.ran)
    process.send_signal(signal.SIGINT)
    until(lambda: scene.records("stop asked"))
    scene.go()
    assert process.wait(timeout=120) == 130
    assert scene.ran() == ["1.1"]
    assert scene.resume().returncode == 0
    assert scene.ran() == ["1.1", "2.1"]


@pytest.mark.parametrize("rule", ["soon,fail=1", "now,fail=1"])
def test_a_run_that_halted_can_be_resumed(scene: Scene, rule: str) -> None:
    args = ("--gpus", "0", "1", "-q", "--halt", rule)
    lines = (f"{RAN}; until [ -e two ]; do sleep 0.02; done; false", f"{RAN}; touch two; sleep 0.5", RAN, RAN)
    assert scene.run(*args, scene.lines(*lines)).returncode == 1
    assert sorted(scene.ran()) == ["1.1", "2.1"]
    done = scene.resume()
    assert done.returncode == 1
    again = ["2.2"] if rule.startswith("now") else []
    assert sorted(scene.ran()[2:]) == [*again, "3.1", "4.1"], done.stderr


def test_a_run_that_ended_by_a_bug_can_be_resumed(scene: Scene) -> None:
    bug = (
        "from simple_gpu_scheduler.run import ends\n"
        "conclude = ends.conclude\n"
        "def broken(state, run, *args):\n"
        "    if run.attempt.job.number == 2: raise AssertionError('a bug')\n"
        "    return conclude(state, run, *args)\n"
        "ends.conclude = broken\n"
        "from simple_gpu_scheduler.cli.main import simple_gpu_scheduler as s; s()\n"
    )
    name = scene.lines(RAN, RAN, f"{RAN} # 3")
    done = subprocess.run(
        [sys.executable, "-c", bug, *OURS, name],
        capture_output=True,
        text=True,
        cwd=scene.directory,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert scene.resume().returncode == 0
    assert scene.ran() == ["1.1", "2.1", "3.1"]


# Journals that are not what they should be.


def refused(scene: Scene, *args: str) -> str:
    done = scene.resume(*args)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def changed(journal: Path, change: Callable[[dict], object]) -> None:
    first, *rest = journal.read_text().splitlines(keepends=True)
    record = json.loads(first)
    change(record)
    journal.write_text("".join([json.dumps(record, separators=(",", ":")) + "\n", *rest]))


def test_a_journal_that_is_none_or_of_a_newer_version_is_refused_with_a_sentence(scene: Scene) -> None:
    scene.run(*OURS, scene.lines(RAN))
    [journal] = scene.journals()
    for text in (
        "",
        "hello\n",
        '{"a": 1}\n',
        '{"event":"job read"}\n',
        "\0" * 100,
        '{"event":"run began","version":1}\n',
    ):
        (scene.directory / "x.jsonl").write_text(text)
        assert "cannot use the journal" in refused(scene, "x.jsonl")
    changed(journal, lambda record: record.update(version=99))
    assert "newer version (format 99)" in refused(scene)
    assert "no such file" in refused(scene, "./nowhere.jsonl")
    assert "no run matches '20010101'" in refused(scene, "20010101")
    (scene.directory / "d.jsonl").mkdir()
    assert "not a regular file" in refused(scene, "d.jsonl")


def test_a_journal_of_another_user_is_refused(scene: Scene) -> None:
    scene.run(*OURS, scene.lines(f"{RAN}; false"))
    [journal] = scene.journals()
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(journal, NOBODY, NOBODY)
    assert "is not a journal of yours" in refused(scene)
    assert "is not a journal of yours" in refused(scene, str(journal))
    os.chown(journal, 0, 0)
    assert scene.resume().returncode == 1


def test_without_a_place_for_the_journal_jobs_run_with_a_warning(scene: Scene) -> None:
    (scene.directory / "state").write_text("a file")
    done = scene.run(*OURS, scene.lines(RAN))
    assert (done.returncode, scene.ran()) == (1, ["1.1"])
    assert "no journal can be kept in" in done.stderr


def test_a_symlink_in_the_runs_directory_is_followed_only_to_a_journal(scene: Scene) -> None:
    scene.run(*OURS, scene.lines(RAN))
    precious = scene.directory / "precious"
    precious.write_text("precious\n")
    for target in (precious, "/dev/zero", "/dev/tty", "/nowhere", scene.runs):
        link = scene.runs / "29990101-000000-abcdef.jsonl"
        link.symlink_to(target)
        assert scene.resume(timeout=120).returncode == 0
        assert refused(scene, link.stem)
        link.unlink()
    assert precious.read_text() == "precious\n"


# Keeping few runs.


@pytest.mark.parametrize("way", ["--keep-runs", "SGS_KEEP_RUNS"])
def test_the_oldest_runs_are_deleted_with_their_side_files_but_no_active_one(scene: Scene, way: str) -> None:
    scene.runs.mkdir(parents=True, mode=0o700)
    old = [f"2001010{number}-000000-abcdef" for number in range(1, 5)]
    for run in old:
        for end in (".jsonl", ".input-0", ".sock"):
            (scene.runs / f"{run}{end}").touch()
    (scene.runs / "20010101-not-ours").touch()
    living = scene.start(*OURS, "--cpu-slots", "1", scene.lines(f"{HOLD} #: gpus=0"))
    until(scene.ran)
    name = scene.lines("true", name="other.txt")
    settings = {"env": {**os.environ, "SGS_KEEP_RUNS": "2"}} if way == "SGS_KEEP_RUNS" else {}
    for _ in range(2):
        args = ("--keep-runs", "2") if way == "--keep-runs" else ()
        assert scene.run("--gpus", "1", "-q", *args, name, **settings).returncode == 0
    assert len(scene.journals()) == 3  # two, and the active one
    assert not [path for path in scene.runs.iterdir() if path.name.startswith(tuple(old))]
    assert (scene.runs / "20010101-not-ours").exists()
    scene.go()
    assert living.wait(timeout=120) == 0


def test_a_run_with_jobs_left_is_not_deleted_by_later_runs(scene: Scene) -> None:
    stopped = scene.start(*OURS, "--cpu-slots", "1", scene.lines(f"{HOLD} #: gpus=0", "echo rest #: gpus=0"))
    until(scene.ran)
    stopped.send_signal(signal.SIGINT)
    scene.go()
    assert stopped.wait(timeout=120) == 130
    (first,) = scene.journals()
    other = scene.lines("true", name="other.txt")

    def are_left_after_another(count: int) -> bool:
        """Once the keepers of earlier runs are gone, which protect them for a moment."""
        assert scene.run("--gpus", "1", "-q", "--keep-runs", "1", other).returncode == 0
        return len(scene.journals()) == count

    for _ in range(3):
        are_left_after_another(2)
    until(lambda: are_left_after_another(2))
    assert scene.run("--resume", str(first)).stdout == "rest\n"
    until(lambda: are_left_after_another(1))


def test_a_dry_run_keeps_no_journal(scene: Scene) -> None:
    assert scene.run("--gpus", "0", "--dry-run", scene.lines(RAN)).returncode == 0
    assert scene.run("--gpus", "0", "--no-journal", scene.lines("true")).returncode == 0
    assert scene.journals() == []


ONE_GPU = ("--gpus", "0", "--ignore-occupancy", "-q")


def runs(program: Program) -> list[Path]:
    """The journals, the newest first."""
    return [Path(path) for path in files.find_runs(str(program.directory / "state/simple_gpu_scheduler/runs"))]


def killed(program: Program, *args: str, stdin: int = subprocess.DEVNULL) -> None:
    """A run that is killed as soon as its first job has begun."""
    process = program.start(*ONE_GPU, *args, env=UNMEASURED, stdin=stdin, stdout=subprocess.DEVNULL)
    until((program.directory / "begun").exists, "its job has begun")
    process.kill()
    process.wait()


@pytest.mark.parametrize("is_late", [False, True], ids=["while it runs", "when it has ended"])
def test_what_a_job_leaves_running_is_ended_though_its_scheduler_was_killed(scene: Scene, is_late: bool) -> None:
    left = "(trap '' TERM; echo $BASHPID > left; while :; do sleep 0.1; done) &"
    job = f"{left} until [ -s left ]; do sleep 0.02; done; {RAN}; {UNTIL_GO}; touch ended"
    scene.killed(job, RAN, args=(*OURS, "--shell", "/bin/bash", "--grace", "0.5"))
    scene.go()
    if is_late:
        until((scene.directory / "ended").exists, "it has ended")
    done = scene.resume()
    assert (done.returncode, scene.ran()) == (0, ["1.1", "2.1"]), done.stderr
    assert not is_alive(int((scene.directory / "left").read_text()))


def test_a_job_that_failed_while_no_scheduler_ran_is_retried_with_the_others_that_failed(scene: Scene) -> None:
    scene.killed(f"{HOLD}; exit 7")
    scene.go()
    until(has_text(scene.journals()[-1], '"job exited"'), "its end is recorded")
    assert scene.run("--resume-failed", "-q").returncode == 1
    assert scene.ran() == ["1.1", "1.2"]
    assert scene.run("--resume", "-q").returncode == 1
    assert scene.ran() == ["1.1", "1.2"]


def test_a_job_whose_exit_code_is_lost_is_cancelled_like_any_other(scene: Scene) -> None:
    process = scene.start(*OURS, scene.lines(f"{RAN}; exec sleep 99"))
    until(has_text(scene.directory / "ran", "1.1\n"), "it runs")
    [keeper] = children_of(process.pid)
    for pid in (keeper, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    resumed = scene.start("--resume", "-q")
    until(lambda: scene.run("cancel", "1").returncode == 0, "it is cancelled")
    assert resumed.wait(timeout=120) == 1
    assert scene.ran() == ["1.1"]


def test_what_is_left_of_a_deleted_journal_is_not_run(program: Program) -> None:
    program.run(*ONE_GPU, "--journal", "mine.jsonl", stdin="echo old >> out\n")
    (program.directory / "mine.jsonl").unlink()
    program.run(*ONE_GPU, "--journal", "mine.jsonl", stdin="echo new >> out\n")
    assert (program.directory / "out").read_text() == "old\nnew\n"


def test_two_pipes_of_a_run_are_kept_apart(program: Program) -> None:
    os.mkfifo(program.directory / "q")
    hold = os.open(program.directory / "q", os.O_RDWR)
    os.write(hold, b"touch begun; sleep 0.3; echo first >> out\n")
    killed(program, "--follow", "q")
    os.close(hold)
    process = program.start(*ONE_GPU, "--resume", "--no-follow", "-", env=UNMEASURED)
    program.feed(process, "echo typed >> out\n")
    assert process.wait(timeout=120) == 0
    assert sorted((program.directory / "out").read_text().split()) == ["first", "typed"]


def test_a_run_that_was_refused_is_none_to_resume(program: Program) -> None:
    (program.directory / "jobs").write_text("touch begun; sleep 0.2; echo done >> out\n")
    killed(program, "jobs")
    for wrong in (
        ["--chdir", "nowhere"],
        ["--logs", "/dev/null/x"],
        ["--cpu-slots", "x"],
        ["--joblog", "/nonexistent/x"],
    ):
        assert program.run(*ONE_GPU, *wrong, "jobs").returncode == 2
    assert len(runs(program)) == 1
    resume = [*SCHEDULER, "--resume", "-q"]
    done = subprocess.run(resume, cwd=program.directory, stdin=subprocess.DEVNULL, check=False, timeout=120)
    assert done.returncode == 0
    assert (program.directory / "out").read_text() == "done\n"


def test_the_job_log_of_a_followed_file_is_kept_by_the_next_scheduler(program: Program) -> None:
    (program.directory / "queue").write_text("true\ntouch begun; sleep 0.2\n")
    killed(program, "--follow", "queue", "--joblog", "log")
    process = program.start(*ONE_GPU, "--follow", "queue", "--joblog", "log", env=UNMEASURED, stdin=subprocess.DEVNULL)
    until(has_text(program.directory / "log", "begun"), "the second job is logged")
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=120)
    rows = (program.directory / "log").read_text().splitlines()[1:]
    assert sorted(row.split("\t")[0] for row in rows) == ["1", "2"]


def test_an_endless_writer_does_not_keep_the_keeper_of_a_killed_scheduler(program: Program) -> None:
    reading, writing = os.pipe()
    endless = subprocess.Popen(["sh", "-c", "echo 'touch begun; sleep 0.2'; exec yes true"], stdout=writing)
    os.close(writing)
    killed(program, stdin=reading)
    os.close(reading)
    until(has_text(runs(program)[0], '"keeper alone"'), "its keeper says that it is alone")
    assert endless.wait(timeout=120) == -signal.SIGPIPE
    assert sum(path.stat().st_size for path in runs(program)[0].parent.glob("*.input-*")) < 8_000_000
