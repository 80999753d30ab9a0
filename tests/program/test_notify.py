"""Notifications: the sink with its thread and real commands, and the whole program."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Fate, Job, Outcome, Place
from simple_gpu_scheduler.events import (
    Event,
    JobDropped,
    JobEnded,
    JobRequeued,
    LineRefused,
    RunBegan,
    RunEnded,
    RunResumed,
)
from simple_gpu_scheduler.events.publisher import SinkTroubleError
from simple_gpu_scheduler.notify import Trigger
from simple_gpu_scheduler.notify.command import Notifier
from simple_gpu_scheduler.notify.message import Notification, told, variables
from simple_gpu_scheduler.notify.sink import Notify
from simple_gpu_scheduler.output.log_file import footer, header
from simple_gpu_scheduler.system import leftovers
from tests.conftest import Program, is_alive, until
from tests.support.processes import command_line

FAILED = Outcome("failed", 1)
BEGAN = RunBegan("20261118-aaaaaa", 1, "0", "deep", "", 1, 1, "/home/ada/x", (), ())
# What a notifier gets as input and variables, each in a file of its own, which is there when it is whole.
KEEP = 'cat > told.$$ && env -0 > env.$$ && mv env.$$ env-$$ && mv told.$$ "$(date +%s.%N).told-$$"'


def job(number: int, command: bytes = b"train", name: str = "") -> Job:
    return Job(number, command, Place(number), name=name)


def ended(number: int, outcome: Outcome = FAILED, command: bytes = b"train", **more: Any) -> JobEnded:
    return JobEnded(Attempt(job(number, command), 1, ("0",), (1,)), outcome, 0.0, 2.0, **{"is_final": True, **more})


def run_ended(code: int = 1) -> RunEnded:
    return RunEnded(1, 2, 3, 4, 61.5, all_read=True, code=code)


class Told:
    """What the notifiers in a directory were told, in order."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def files(self) -> list[Path]:
        return sorted(self.directory.glob("*.told-*"))

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_bytes()) for path in self.files()]

    def events(self) -> list[tuple[str, list[int]]]:
        return [(each["event"], [one["job"] for one in each["jobs"]]) for each in self.all()]

    def environments(self) -> list[dict[bytes, bytes]]:
        paths = [self.directory / f"env-{path.name.rpartition('-')[2]}" for path in self.files()]
        return [dict(pair.split(b"=", 1) for pair in path.read_bytes().split(b"\0") if pair) for path in paths]  # type: ignore[misc]

    def count(self, number: int) -> Callable[[], bool]:
        return lambda: len(self.files()) >= number


class Subject:
    """A sink whose notifier runs in a directory, and what it says."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.told = Told(directory)
        self.said: list[str] = []
        self.sink: Notify | None = None
        self.logs: dict[int, str] = {}

    def make(
        self, *on: Trigger, command: str = KEEP, environment: Mapping[bytes, bytes] | None = None, **settings: float
    ) -> None:
        notifier = Notifier(
            f"cd '{self.directory}'\n{command}",
            "/bin/sh",
            os.environb if environment is None else environment,
        )
        self.sink = Notify(notifier, frozenset(on), lambda job: self.logs.get(job.number, ""), **settings)

    def take(self, *events: Event) -> None:
        for event in events:
            self._do(lambda event=event: self.sink.take(event))  # type: ignore[misc]

    def close(self) -> None:
        self._do(self.sink.close)  # type: ignore[union-attr]

    def _do(self, call: Callable[[], None]) -> None:
        try:
            call()
        except SinkTroubleError as trouble:
            self.said.append(f"FAILURE: {trouble}" if trouble.is_failure else str(trouble))


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject(tmp_path)


class TestReports:
    def test_at_the_end_the_summary_the_counts_and_what_failed(self, subject: Subject) -> None:
        subject.make("end")
        subject.take(BEGAN, ended(1, SUCCESS), ended(2), ended(3, is_final=False), run_ended(code=7))
        subject.close()
        [told], [variables] = subject.told.all(), subject.told.environments()
        expected = {
            "event": "end",
            "run": "20261118-aaaaaa",
            "summary": "1 succeeded, 2 failed, 3 timed out, 4 not started in 1 min 2 s",
            "succeeded": 1,
            "failed": 2,
            "timed_out": 3,
            "not_started": 4,
            "seconds": 61.5,
            "code": 7,
            "host": "deep",
            "directory": "/home/ada/x",
        }
        assert expected.items() <= told.items()
        assert [each["job"] for each in told["jobs"]] == [2]
        for name, value in expected.items():
            assert variables[f"SGS_{name.upper()}".encode()] == str(value).encode()
        assert variables[b"SGS_JOB"] == b""
        assert subject.said == []

    def test_of_a_failure_its_sentence_and_its_job(self, subject: Subject) -> None:
        subject.make("fail")
        subject.take(BEGAN, ended(1, SUCCESS), ended(3))
        until(subject.told.count(1))
        [told], [variables] = subject.told.all(), subject.told.environments()
        assert told["summary"] == "job 3 (line 3) failed with exit code 1 after 2.0 s: train"
        assert (told["event"], told["code"], told["succeeded"], told["failed"]) == ("fail", None, 1, 1)
        assert told["jobs"] == [
            {
                "job": 3,
                "name": "",
                "place": "line 3",
                "command": "train",
                "outcome": "failed",
                "code": 1,
                "reason": "",
                "runtime": 2.0,
                "gpus": ["0"],
                "attempt": 1,
                "log": "",
                "last_lines": [],
            }
        ]
        assert variables[b"SGS_SUMMARY"].decode() == told["summary"]
        assert (variables[b"SGS_JOB"], variables[b"SGS_COMMAND"]) == (b"3", b"train")
        assert (variables[b"SGS_OUTCOME"], variables[b"SGS_CODE"]) == (b"failed", b"")
        subject.close()

    def test_the_last_lines_of_its_log(self, subject: Subject, tmp_path: Path) -> None:
        log = tmp_path / "0003.log"
        one = ended(3)
        log.write_bytes(
            header(one.attempt, "a-run", 0) + b"epoch 1\nout of \x1b[31mmemory\x1b[0m\x07\n" + footer(FAILED, 2, 0)
        )
        subject.logs = {number: str(tmp_path / f"000{number}.log") for number in (3, 4)}
        subject.make("fail")
        subject.take(one, JobDropped(job(4), "job 3 failed"))
        subject.close()
        about = {each["job"]: each for told in subject.told.all() for each in told["jobs"]}
        assert about[3]["last_lines"] == ["epoch 1", "out of memory\\x07"]
        assert about[3]["log"] == str(log)
        assert (about[4]["log"], about[4]["last_lines"]) == ("", [])
        assert subject.told.environments()[0][b"SGS_LOG"].decode() == str(log)

    def test_no_success_no_stop_and_no_cancellation_is_a_failure(self, subject: Subject) -> None:
        subject.make("fail")
        subject.take(ended(1, SUCCESS), ended(2, is_interrupted=True), ended(3, is_final=False))
        subject.take(JobDropped(job(4), "it was cancelled", is_cancelled=True), ended(5)._replace(is_cancelled=True))
        subject.take(run_ended())
        subject.close()
        assert subject.told.all() == []

    @pytest.mark.parametrize(
        ("event", "how"),
        [
            (ended(1, Outcome("killed", 9)), "was killed by SIGKILL after 2.0 s"),
            (ended(1, Outcome("timed out")), "timed out after 2.0 s"),
            (ended(1, Outcome("not started", reason="No such file")), "was not started: No such file"),
            (JobDropped(job(1), "job 9 failed"), "was not started: job 9 failed"),
        ],
        ids=["killed", "timed out", "not started", "dropped"],
    )
    def test_every_other_end_is_one(self, subject: Subject, event: JobEnded | JobDropped, how: str) -> None:
        subject.make("fail")
        subject.take(event)
        subject.close()
        assert [told["summary"] for told in subject.told.all()] == [f"job 1 (line 1) {how}: train"]

    def test_with_each_every_job_is_notified_and_the_end(self, subject: Subject) -> None:
        subject.make("each", pause=0)
        subject.take(BEGAN, ended(1, SUCCESS))
        until(subject.told.count(1))
        subject.take(ended(2))
        until(subject.told.count(2))
        subject.take(run_ended())
        subject.close()
        assert subject.told.events() == [("each", [1]), ("each", [2]), ("end", [2])]
        assert subject.told.all()[0]["summary"].startswith("job 1 (line 1) succeeded after")

    def test_a_job_that_waits_again_before_its_end_was_reported_is_no_news(self, subject: Subject) -> None:
        subject.make("fail", "end")
        subject.take(ended(1))
        until(subject.told.count(1))
        subject.take(ended(2), ended(3), JobRequeued(job(2), "gpu 1 was set aside"), run_ended())
        subject.close()
        assert subject.told.events() == [("fail", [1]), ("fail", [3]), ("end", [1, 3])]
        assert [told["failed"] for told in subject.told.all()] == [1, 2, 2]

    def test_what_an_earlier_scheduler_of_the_run_has_done_counts(self, subject: Subject) -> None:
        ends: list[Fate] = [*["succeeded"] * 5, *["failed"] * 3, "not started", "not started", "cancelled"]
        earlier = [(job(number), fate) for number, fate in enumerate(ends, 20)]
        subject.make("fail")
        subject.take(RunResumed(earlier), ended(9))
        subject.close()
        [told] = subject.told.all()
        assert [told[name] for name in ("succeeded", "failed", "not_started", "cancelled")] == [5, 4, 2, 1]

    def test_lines_that_were_refused_count_as_not_started(self, subject: Subject) -> None:
        subject.make("fail")
        subject.take(LineRefused(Place(1), "no"), ended(2))
        subject.close()
        assert [told["not_started"] for told in subject.told.all()] == [1]


class TestAFlood:
    def test_of_200_failures_the_first_is_sent_at_once_and_the_rest_together(self, subject: Subject) -> None:
        subject.make("fail", "end")
        subject.take(ended(1))
        until(subject.told.count(1))
        subject.take(*(ended(number) for number in range(2, 201)))
        time.sleep(0.2)
        assert len(subject.told.files()) == 1
        subject.take(run_ended())
        subject.close()
        first, rest, end = subject.told.all()
        assert [each["job"] for each in first["jobs"]] == [1]
        assert [each["job"] for each in rest["jobs"]] == list(range(2, 102))
        assert (rest["more_jobs"], end["more_jobs"]) == (99, 100)
        assert rest["summary"].startswith(
            "199 jobs did not succeed: job 2 (line 2) failed with exit code 1 after 2.0 s: "
        )
        assert rest["summary"].endswith("; and 196 more")

    def test_what_comes_within_the_pause_is_sent_when_it_is_over(self, subject: Subject) -> None:
        subject.make("fail", pause=0.5)
        began = time.monotonic()
        subject.take(ended(1))
        until(subject.told.count(1))
        subject.take(ended(2), ended(3))
        until(subject.told.count(2))
        assert time.monotonic() - began >= 0.5
        assert subject.told.events() == [("fail", [1]), ("fail", [2, 3])]
        subject.close()

    def test_there_is_one_notifier_at_a_time(self, subject: Subject) -> None:
        alone = "mkdir running && sleep 0.1 && rmdir running && " + KEEP
        subject.make("each", command=alone, pause=0)
        for number in range(5):
            subject.take(ended(number))
            time.sleep(0.03)
        subject.take(run_ended())
        subject.close()
        assert subject.said == []
        assert sorted({number for _, jobs in subject.told.events() for number in jobs}) == list(range(5))

    def test_some_that_succeeded_are_counted_apart(self, subject: Subject) -> None:
        subject.make("each", "fail")
        subject.take(ended(1, SUCCESS))
        until(subject.told.count(1))
        subject.take(ended(2, SUCCESS), ended(3))
        subject.close()
        assert [told["event"] for told in subject.told.all()] == ["each", "fail"]
        assert subject.told.all()[1]["summary"].startswith("2 jobs ended, 1 of them unsuccessfully: job 2")


class TestANotifier:
    def test_that_fails_is_reported_with_its_last_words(self, subject: Subject) -> None:
        subject.make("fail", command="echo one >&2; no-such-mail")
        subject.take(ended(1))
        until(lambda: (subject.take(LineRefused(Place(1), "")), subject.said)[1])
        subject.close()
        [sentence] = subject.said
        assert re.fullmatch(
            r"the notifier failed with exit code 127: .*no-such-mail.*not found; the run continues", sentence
        )

    def test_that_fails_at_the_end_does_not_say_that_the_run_continues(self, subject: Subject) -> None:
        subject.make("end", command="echo no >&2; kill -9 $$")
        subject.take(run_ended())
        subject.close()
        assert subject.said == ["the notifier was killed by SIGKILL: no"]

    def test_that_hangs_is_killed_with_all_of_its_group(self, subject: Subject, pids: Callable[[str], int]) -> None:
        subject.make("end", command="sleep 1000 & echo $! > child; echo $$ > main; wait", limit=0.5)
        began = time.monotonic()
        subject.take(run_ended())
        subject.close()
        most = time.monotonic() - began
        [sentence] = subject.said
        killed = re.fullmatch(r"the notifier was killed after (\d\.\d) s", sentence)
        assert killed
        assert 0.5 <= float(killed[1]) <= most + 0.05  # it says how long it was, in tenths
        left = [pids("child"), pids("main")]
        until(lambda: not any(map(is_alive, left)))

    def test_that_hangs_holds_the_end_up_no_longer_than_one_may(self, subject: Subject) -> None:
        subject.make("each", command="touch began; sleep 1000", limit=1.5)
        subject.take(ended(1))
        until((subject.directory / "began").exists)
        began = time.monotonic()
        subject.take(ended(2), run_ended())
        subject.close()
        assert time.monotonic() - began > 1.4
        assert re.search(r"the notifier was killed after 0\.\d s$", subject.said[-1])

    def test_never_makes_the_loop_wait(self, subject: Subject) -> None:
        subject.make("each", command="while [ ! -e go ]; do sleep 0.01; done")
        subject.take(*(ended(number) for number in range(50)))
        (subject.directory / "go").touch()
        subject.close()
        assert subject.said == []

    def test_that_says_a_lot_fills_no_memory(self, subject: Subject) -> None:
        subject.make("end", command="head -c 2000000 /dev/zero >&2 || touch full; echo no >&2; exit 1")
        subject.take(run_ended())
        subject.close()
        assert (subject.directory / "full").exists()
        assert subject.said == ["the notifier failed with exit code 1"]

    def test_reads_from_a_file_and_so_need_not_read(self, subject: Subject) -> None:
        subject.make("fail", command="exit 0")
        subject.take(*(ended(number, command=b"x" * 100_000) for number in range(90)))
        subject.close()
        assert subject.said == []

    def test_is_no_leader_of_our_terminal_and_blocks_no_signal(self, subject: Subject) -> None:
        subject.make("end", command="ps -o sid= -p $$ > sid; grep -E 'Sig(Blk|Ign)' /proc/self/status > signals")
        subject.take(run_ended())
        subject.close()
        assert int((subject.directory / "sid").read_text()) != os.getsid(0)
        # Signals 32 and 33 are the C library's own.
        masks = [
            int(line.split()[1], 16) & 0x7FFF_FFFF for line in (subject.directory / "signals").read_text().splitlines()
        ]
        assert masks == [0, 0]

    def test_that_cannot_be_started_is_reported(self, subject: Subject) -> None:
        subject.make("end")
        subject.sink._notifier._argv = [b"/no/such/shell", b"-c", b"true"]  # type: ignore[union-attr]
        subject.take(run_ended())
        subject.close()
        assert re.fullmatch("cannot start the notifier with /no/such/shell: No such file or directory", subject.said[0])

    def test_has_its_thread_only_when_there_is_something_to_tell(self, subject: Subject) -> None:
        before = threading.active_count()
        subject.make("fail")
        subject.take(BEGAN, ended(1, SUCCESS), run_ended())
        assert threading.active_count() == before
        subject.close()

    def test_is_reported_at_the_end_where_there_can_be_no_thread(
        self, subject: Subject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_run: object) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr("simple_gpu_scheduler.notify.sink.start_thread", refuse)
        subject.make("fail")
        subject.take(ended(1), ended(2), run_ended())
        subject.close()
        assert subject.told.events() == [("fail", [1, 2])]


class TestStringsOfJobs:
    @pytest.mark.parametrize(
        "command",
        [b"echo 'a \"b\" $c `d`' \\\n  && two", b"echo \xff\xfe", "echo ü€".encode() * 30_000, b"x" * 131_071],
        ids=["quotes", "no UTF-8", "long", "longest"],
    )
    def test_reach_it_whole_or_cut(self, subject: Subject, command: bytes) -> None:
        subject.make("fail")
        subject.take(ended(1, command=command))
        subject.close()
        assert subject.said == []
        [told], [variables] = subject.told.all(), subject.told.environments()
        assert told["jobs"][0]["command"] == command.decode("utf-8", "backslashreplace")
        given = variables[b"SGS_COMMAND"]
        assert command.startswith(given)
        assert len(given) == len(command) or 131_050 <= len(b"SGS_COMMAND=" + given) <= 131_071
        assert "\n" not in told["summary"]
        assert len(told["summary"].encode()) <= 900
        if len(command) > len(given):
            given.decode()

    def test_reach_it_cut_where_the_environment_of_the_user_leaves_no_room(self, subject: Subject) -> None:
        # Of 2 MiB, which a stack of 8 MiB gives.
        filler = {b"FILL%d" % number: b"x" * 129_000 for number in range(16)}
        soft = 8 * 1024 * 1024
        import resource  # noqa: PLC0415 - of this test alone

        old = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (soft, old[1]))
        try:
            subject.make("fail", command="echo ${#SGS_COMMAND} > length", environment={**os.environb, **filler})
            subject.take(ended(1, command=b"x" * 131_000))
            subject.close()
        finally:
            resource.setrlimit(resource.RLIMIT_STACK, old)
        assert subject.said == []
        assert int((subject.directory / "length").read_text()) <= 1024

    def test_have_no_nul_there(self) -> None:
        about = variables(Notification("fail", "", jobs=[told(ended(1, command=b"a\0b"))]))
        assert about[b"SGS_COMMAND"] == b"a?b"

    def test_of_an_outer_job_are_not_taken_for_ours(self, subject: Subject) -> None:
        outer = {b"SGS_JOB": b"77", b"SGS_SLOT": b"5", b"SGS_TREE": b"/outer.77.1", b"SGS_CODE": b"9", b"MINE": b"\xff"}
        subject.make("fail", environment={**os.environb, **outer})
        subject.take(ended(1))
        subject.close()
        [variables] = subject.told.environments()
        assert (variables[b"SGS_JOB"], variables[b"SGS_CODE"], variables[b"MINE"]) == (b"1", b"", b"\xff")
        assert variables[b"SGS_TREE"] == b"/outer.77.1"
        assert b"SGS_SLOT" not in variables


class TestWhatJobsLeaveBehind:
    LEFT = "setsid sleep 1000 & sleep 0.05; exit 0\n"

    def test_is_no_notifier_and_nothing_that_a_notifier_has_started(self, program: Program) -> None:
        for ending in ("wait", "exit 0"):
            go, sent = program.directory / "go", program.directory / "sent"
            tell = f"(trap '' HUP; echo >> began; while [ ! -e go ]; do sleep 0.01; done; echo >> sent) & {ending}"
            process = program.start("--gpus", "0", "--notify", tell, "--notify-on", "fail")
            program.feed(process, f"exit 1\nuntil [ -e began ]; do sleep 0.01; done\n{self.LEFT * 3}touch go\n")
            said = process.communicate(timeout=120)[1]
            assert said.count(b"left a process running, which was ended") == 3
            until(sent.exists, "what the notifier has started is done in its own time")
            for path in (go, sent, program.directory / "began"):
                path.unlink()


@pytest.mark.usefixtures("idle_gpus")
class TestTheProgram:
    @pytest.fixture
    def told(self, tmp_path: Path) -> Told:
        return Told(tmp_path)

    def test_tells_of_its_end_whatever_is_on_its_stdin(self, program: Program, told: Told, tmp_path: Path) -> None:
        done = program.run("--gpus", "0,1", "--notify", KEEP, stdin="true\nfalse\nexit 3 #: name=third\n")
        assert done.returncode == 1
        [end] = told.all()
        assert b"1 succeeded, 2 failed, 0 timed out, 0 not started in " in done.stderr
        assert end["summary"].encode() in done.stderr
        assert (end["event"], end["code"], end["directory"]) == ("end", 1, str(tmp_path))
        assert {each["job"]: each["code"] for each in end["jobs"]} == {2: 1, 3: 3}
        journal = tmp_path / "state" / "simple_gpu_scheduler" / "runs" / f"{end['run']}.jsonl"
        assert journal.exists()

    def test_tells_of_a_failure_while_others_run_and_shows_its_log(
        self, program: Program, told: Told, tmp_path: Path
    ) -> None:
        process = program.start("--gpus", "0,1", "--logs", "out", "--notify", KEEP, "--notify-on", "fail")
        program.feed(process, "echo out of memory; exit 1\nwhile [ ! -e go ]; do sleep 0.01; done\n")
        until(told.count(1))
        (tmp_path / "go").touch()
        assert process.wait(timeout=120) == 1
        [failure] = told.all()
        [about] = failure["jobs"]
        assert (about["last_lines"], about["log"]) == (["out of memory"], str(tmp_path / "out" / "0001.log"))

    def test_tells_of_each_job_and_the_end(self, program: Program, told: Told) -> None:
        done = program.run("--gpus", "0,1", "--notify", KEEP, "--notify-on", "each", stdin="true\n" * 4)
        assert done.returncode == 0
        assert sorted(number for _, jobs in told.events() for number in jobs) == [1, 2, 3, 4]
        assert [told.events()[0][0], told.events()[-1]] == ["each", ("end", [])]

    def test_tells_of_a_flood_in_three_pieces(self, program: Program, told: Told) -> None:
        arguments = (
            "--cpu-slots",
            "2",
            "--quarantine",
            "0",
            "--notify",
            KEEP,
            "--notify-on",
            "end",
            "--notify-on",
            "fail",
        )
        done = program.run("--gpus", "0", *arguments, stdin="false #: gpus=0\n" * 200)
        assert done.returncode == 1
        first, rest, end = told.all()
        assert len(first["jobs"]) + len(rest["jobs"]) + rest["more_jobs"] == 200
        assert (end["event"], end["failed"]) == ("end", 200)

    def test_says_that_the_notifier_fails_and_exits_as_the_jobs_do(self, program: Program) -> None:
        done = program.run("--gpus", "0", "--notify", "no-such-mail", stdin="true\n")
        assert done.returncode == 0
        assert b"the notifier failed with exit code 127: " in done.stderr.splitlines()[-1]

    @pytest.mark.parametrize(
        "command",
        ["printf '%s' 'a\n\"b\"'; false", "false " + "ü" * 60_000, "false '\udcff\udcfe' \x1b[31m"],
        ids=["newline", "huge", "no UTF-8"],
    )
    def test_tells_of_any_command(self, program: Program, told: Told, command: str) -> None:
        arguments = ("--gpus", "0", "--notify", KEEP, "--notify-on", "fail", "--null")
        done = program.run(*arguments, stdin=command.encode("utf-8", "surrogateescape"))
        assert done.returncode == 1
        assert b"notifier" not in done.stderr
        [variables] = told.environments()
        assert variables[b"SGS_COMMAND"] == command.encode("utf-8", "surrogateescape")

    def test_ends_no_notifier_when_jobs_end_around_it(self, program: Program, told: Told) -> None:
        slow = f"touch began; while [ ! -e go ]; do sleep 0.01; done; {KEEP}"
        process = program.start("--gpus", "0,1", "--notify", slow, "--notify-on", "fail")
        leaves = "(setsid sleep 1000 &) ; sleep 0.05\n" * 5
        program.feed(process, f"false\nuntil [ -e began ]; do sleep 0.01; done\n{leaves}touch go\n")
        assert process.wait(timeout=120) == 1
        assert told.events() == [("fail", [1])]

    def test_still_notifies_when_the_keeper_is_killed(self, program: Program, told: Told, tmp_path: Path) -> None:
        slow = f"touch began; until [ -e go ]; do sleep 0.01; done; {KEEP}"
        process = program.start("--gpus", "0,1", "--notify", slow, "--notify-on", "fail,end")
        program.feed(process, "false\nuntil [ -e go ]; do sleep 0.01; done; (sleep 1000 &); exit 5\n")
        until((tmp_path / "began").exists)
        [keeper] = [pid for pid in leftovers.children(process.pid) if b"--notify-on" in command_line(pid)]
        os.kill(keeper, signal.SIGKILL)
        until(lambda: not is_alive(keeper))
        (tmp_path / "go").touch()
        assert process.wait(timeout=120) == 1
        assert [event for event, _ in told.events()] == ["fail", "fail", "end"]
        assert {each["job"]: each["code"] for each in told.all()[-1]["jobs"]} == {1: 1, 2: 5}

    def test_tells_of_a_run_that_is_stopped(self, program: Program, told: Told, tmp_path: Path) -> None:
        process = program.start("--gpus", "0", "--notify", KEEP, "--notify-on", "end,fail")
        program.feed(process, "touch began; exec sleep 1000\n" * 2)
        until((tmp_path / "began").exists)
        process.terminate()
        assert process.wait(timeout=120) == 143
        assert [(each["event"], each["code"], each["not_started"]) for each in told.all()] == [("end", 143, 1)]

    def test_ctrl_c_reaches_no_notifier(self, program: Program, told: Told, tmp_path: Path) -> None:
        slow = f"touch telling; until [ -e go ]; do sleep 0.01; done; {KEEP}"
        arguments = ("--gpus", "0,1", "--notify", slow, "--notify-on", "fail")
        process = program.start(*arguments, start_new_session=True)
        program.feed(process, "false\nuntil [ -e go ]; do sleep 0.01; done\n")
        until((tmp_path / "telling").exists)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr
        until(lambda: b"Ctrl-C" in process.stderr.readline())  # type: ignore[union-attr]
        (tmp_path / "go").touch()
        assert process.wait(timeout=120) == 130
        assert told.events() == [("fail", [1])]

    def test_notifies_of_nothing_that_it_would_do(self, program: Program, told: Told) -> None:
        program.run("--gpus", "0", "--dry-run", "--notify", KEEP, "--notify-on", "each", stdin="false\n")
        assert told.all() == []

    def test_refuses_what_is_no_trigger(self, program: Program) -> None:
        done = program.run("--notify", "true", "--notify-on", "often", stdin="true\n")
        assert done.returncode == 2
        assert b"'often' is not one of end, fail, each" in done.stderr

    def test_writes_nothing_that_others_could_read(self, program: Program, tmp_path: Path) -> None:
        look = f"ls -l /proc/self/fd > {tmp_path}/fds"
        assert program.run("--gpus", "0", "--notify", look, stdin="true\n").returncode == 0
        targets = [line.partition(" -> ")[2] for line in (tmp_path / "fds").read_text().splitlines()]
        assert sum("memfd:notification" in target for target in targets) == 2
