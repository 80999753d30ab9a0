"""`history`: past runs, the jobs of one, and jobs as commands that are read again as they were."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import Attempt, Outcome, Place
from simple_gpu_scheduler.journal import files, find
from tests.conftest import UNMEASURED, Program, until
from tests.support.commands import check_all_commands
from tests.support.journal import golden, records
from tests.support.runs import DONE, FIRST, SECOND, THIRD, ended, job, write

CALL = """
import sys
from simple_gpu_scheduler.cli.call import call
from simple_gpu_scheduler.cli.main import _exit_with
from simple_gpu_scheduler.cli.commands.history import history_command as command
name = "simple_gpu_scheduler history"
_exit_with(name, lambda: call(command, sys.argv[1:], name))
"""
HISTORY = [sys.executable, "-c", CALL]
RUN_KEYS = [
    "run", "journal", "begun", "ended", "state", "seconds", "directory", "host", "argv", "code", "disk",
    "succeeded", "failed", "running", "waiting", "not_started",
    "cancelled", "interrupted",
]  # fmt: skip
JOB_KEYS = [
    "job", "name", "state", "attempts", "outcome", "code", "reason", "gpus", "started", "ended", "runtime", "line",
    "source", "options", "after", "command",
]  # fmt: skip


def ask(*args: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([*HISTORY, *args], cwd=cwd, check=False, capture_output=True, timeout=120)


def told(*args: str, cwd: Path | None = None) -> bytes:
    done = ask(*args, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def as_json(*args: str, cwd: Path | None = None) -> list[dict[str, object]]:
    rows = json.loads(told(*args, "--json", cwd=cwd))
    assert isinstance(rows, list)
    return rows


def on_terminal(columns: int, *args: str) -> list[str]:
    """The lines that it prints to a terminal of this width."""
    leader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    subprocess.run([*HISTORY, *args], stdout=terminal, env=environment, check=True, timeout=120)
    os.close(terminal)
    lines = os.read(leader, 100_000).decode().splitlines()
    os.close(leader)
    return lines


def refusal(*args: str) -> str:
    done = ask(*args)
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.decode().splitlines()
    return line


def write_every_state() -> None:
    """A run that died with a job in each state."""
    jobs = [job(number, b"echo %d" % number) for number in range(1, 7)]
    failed, started = (
        ended(jobs[2], Outcome("failed", 1))[1],
        events.JobStarted(Attempt(jobs[2], 2, ("1", "2"), (0, 1))),
    )
    write(
        FIRST,
        events.JobsRead(jobs),
        *ended(jobs[0]),
        *ended(jobs[1], Outcome("killed", 9)),
        failed._replace(is_final=False),
        started,
        events.JobDropped(jobs[3], "job 2 did not succeed"),
        events.JobDropped(jobs[4], "cancelled by root", is_cancelled=True),
        events.LineRefused(Place(7, "more.txt"), "unknown option 'x'", 7),
    )


class TestRuns:
    def test_are_listed_with_how_each_stands(self, program: Program) -> None:
        program.run("--gpus", "0", "--ignore-occupancy", stdin="true\nfalse\ntrue #: bad=1\n")
        write(THIRD, events.JobsRead([job(1)]), directory="/else\x1bwhere")
        died, finished = sorted(as_json(), key=lambda row: row["state"] == "finished")
        assert list(died) == list(finished) == RUN_KEYS
        assert [died[key] for key in ("run", "state", "waiting", "ended", "code")] == [THIRD, "died", 1, None, None]
        assert [finished[key] for key in ("state", "succeeded", "failed", "not_started", "code")] == [
            *("finished", 1, 1, 1, 2)
        ]
        assert finished["directory"] == str(program.directory)
        heading, *lines = told().decode().splitlines()
        assert re.split(r"\s{2,}", heading) == ["RUN", "STARTED", "TOOK", "STATE", "JOBS", "DISK", "DIRECTORY"]
        cells = {line.split()[0]: re.split(r"\s{2,}", line)[3:] for line in lines}
        assert cells[THIRD] == ["died", "1 waiting", "4 KiB", r"/else\x1bwhere"]
        assert cells[str(finished["run"])][:2] == ["finished", "1 succeeded, 1 failed, 1 not started"]

    def test_are_listed_newest_first_as_many_as_wanted_and_of_this_directory(self, tmp_path: Path) -> None:
        for run, directory in ((SECOND, "/"), (THIRD, str(tmp_path)), (FIRST, str(tmp_path))):
            write(run, directory=directory)
        assert [row["run"] for row in as_json()] == [THIRD, SECOND, FIRST]
        assert [row["run"] for row in as_json("-n", "2")] == [THIRD, SECOND]
        assert [row["run"] for row in as_json("-n", "2", "--here", cwd=tmp_path)] == [THIRD, FIRST]

    def test_run_while_their_scheduler_runs_and_have_died_after_a_kill(
        self, program: Program, pids: Callable[[str], int]
    ) -> None:
        process = program.start("--gpus", "0", "--ignore-occupancy", "-q", env=UNMEASURED)
        program.feed(process, "true\necho $$ > pid; exec sleep 1000\ntrue\n")
        pid = pids("pid")
        until(lambda: as_json()[0]["succeeded"] == 1, "the first job has ended")
        (row,) = as_json()
        assert [row[key] for key in ("state", "running", "waiting", "code")] == ["running", 1, 1, None]
        assert [each["state"] for each in as_json("--running")] == ["running"]
        os.kill(pid, signal.SIGSTOP)  # so that it is there when its scheduler has died, whatever that leaves behind
        process.kill()
        process.wait()
        (row,) = as_json()
        assert (row["state"], row["waiting"]) == ("died", 1)
        assert b"running" not in told()

    def test_of_another_host_are_not_shown_as_dead(self) -> None:
        started = events.JobStarted(Attempt(job(1), 1, ("0",), (0,)))
        write(FIRST, events.JobsRead([job(1)]), started, host="other")
        write(SECOND, events.JobsRead([job(1)]), *ended(job(1)), DONE, host="other")
        assert [row["state"] for row in as_json()] == ["finished", "died, or is running on other"]
        assert [row["state"] for row in as_json(FIRST)] == ["unknown"]

    def test_that_cannot_be_read_hide_no_others(self) -> None:
        write(FIRST, DONE)
        newer = write(SECOND)
        newer.write_bytes(newer.read_bytes().replace(b'"version":1', b'"version":99'))
        write(THIRD).write_bytes(b"")
        gone = Path(files.runs_directory(os.environ), "20261120-000000-000000.jsonl")
        gone.symlink_to("/nowhere/at all")
        done = ask("--json")
        assert (done.returncode, [row["run"] for row in json.loads(done.stdout)]) == (0, [FIRST])
        assert [line.partition(".jsonl: ")[2] for line in done.stderr.decode().splitlines()] == [
            "it does not start like a journal",
            "it was written by a newer version (format 99)",
        ]


class TestJobs:
    @pytest.mark.parametrize(
        ("filters", "numbers"),
        [
            ([], [1, 2, 3, 4, 5, 6, 7]),
            (["--succeeded"], [1]),
            (["--failed"], [2]),
            (["--running"], [3]),
            (["--not-started"], [4, 7]),
            (["--cancelled"], [5]),
            (["--waiting"], [6]),
            (["--failed", "--running", "--waiting"], [2, 3, 6]),
        ],
    )
    def test_are_chosen_by_how_they_stand(self, filters: list[str], numbers: list[int]) -> None:
        write_every_state()
        assert [row["job"] for row in as_json(FIRST, *filters)] == numbers

    def test_are_shown_with_everything_known_about_them(self) -> None:
        write_every_state()
        rows = as_json(FIRST)
        assert all(list(row) == JOB_KEYS for row in rows)
        assert [row["state"] for row in rows] == [
            *("succeeded", "failed", "interrupted", "not started", "cancelled", "waiting", "refused"),
        ]
        assert list(rows[1].values()) == [
            *(2, None, "failed", 1, "killed", 9, None, ["0"], 1000.0, 1005.0, 2.5, 2, None, {}, [], "echo 2"),
        ]
        assert (rows[2]["gpus"], rows[2]["runtime"], rows[2]["outcome"]) == (["1", "2"], None, None)
        assert [rows[6][key] for key in ("command", "source", "reason")] == [None, "more.txt", "unknown option 'x'"]
        heading, *lines = told(FIRST).decode().splitlines()
        table = [re.split(r"\s{2,}", line) for line in lines]
        assert heading.split() == ["JOB", "NAME", "STATE", "ATTEMPTS", "OUTCOME", "GPUS", "STARTED", "TOOK", "COMMAND"]
        assert table[1][2:6] + table[1][7:] == ["failed", "1", "was killed by SIGKILL", "0", "2.5 s", "echo 2"]
        assert table[2][2:6] == ["interrupted", "2", "-", "1,2"]
        assert table[3][2:] == ["not started", "0", "job 2 did not succeed", "-", "-", "-", "echo 4"]

    def test_run_on_where_a_keeper_survives_the_scheduler(self) -> None:
        path = write(FIRST, events.JobsRead([job(1)]), events.JobStarted(Attempt(job(1), 1, ("0",), (0,))))
        fd = os.open(path, os.O_RDWR)
        files.lock(fd, files.keeper_of(1))
        assert ([row["state"] for row in as_json()], [row["state"] for row in as_json(FIRST)]) == (
            ["died"],
            ["running"],
        )
        os.close(fd)
        assert [row["state"] for row in as_json(FIRST)] == ["interrupted"]

    def test_are_shown_in_whole_lines_in_a_pipe_and_cut_on_a_narrow_terminal(self) -> None:
        long = b"echo \xff\x1b[2J \xe6\x97\xa5 " + b"x" * 5000
        write(FIRST, events.JobsRead([job(1, long)]))
        assert told(FIRST).decode().endswith(r"  echo \xff\x1b[2J 日 " + "x" * 5000 + "\n")
        heading, line = on_terminal(60, FIRST)
        assert heading.split() == ["JOB", "STATE", "ATTEMPTS", "COMMAND"], "without what is empty"
        assert (len(line), "…" in line) == (60, True)
        assert [(len(line), line[-1]) for line in on_terminal(16, FIRST)] == [(16, "…")] * 2

    def test_leave_a_third_of_a_terminal_to_their_commands(self) -> None:
        jobs = [job(number, b"python3 train.py --data imagenet --lr 0.%d" % number) for number in (1, 2)]
        write(FIRST, events.JobsRead(jobs), *ended(jobs[0]), *ended(jobs[1], Outcome("failed", 1)), DONE)
        heading, first, second = on_terminal(80, FIRST)
        assert heading.split() == ["JOB", "STATE", "OUTCOME", "GPUS", "STARTED", "TOOK", "COMMAND"]
        assert 80 - heading.index("COMMAND") >= 26
        assert re.fullmatch(r"1    succeeded  -            0     \d\d:\d\d:\d\d  2\.5 s  python3 .*--lr 0\.1", first), (
            first
        )
        assert re.match(r"2    failed     exit code 1  0     \d\d:\d\d:\d\d  ", second), second
        columns = told(FIRST).decode().splitlines()[2]
        assert re.fullmatch(r"2    -     failed     1 +failed with exit code 1  0     \d{4}-.*", columns), "in a pipe"
        late = ended(jobs[1])[1]._replace(started_at=1000.0 + 90_000)
        write(SECOND, events.JobsRead(jobs), *ended(jobs[0]), ended(jobs[1])[0], late, DONE)
        assert re.search(r"  \d{4}-\d\d-\d\d \d\d:", on_terminal(80, SECOND)[1]), "the dates differ"

    def test_of_a_damaged_journal_are_shown_with_a_warning(self) -> None:
        more = b'nonsense\n{"event":"moon rose","at":1}\n{"event":"job ended","at":1}\n{"event":"torn'
        path = write(FIRST, events.JobsRead([job(1)]), more=more)
        done = ask(FIRST, "--commands")
        assert (done.returncode, done.stdout) == (0, b"true\n")
        assert done.stderr.decode().splitlines() == [
            f"{path}: 2 lines of the journal could not be read",
            f"{path}: events unknown to this version: moon rose",
        ]

    def test_options_that_go_with_something_else_are_refused(self) -> None:
        write(FIRST)
        assert "--null requires --commands" in refusal(FIRST, "--null")
        assert "exclude each other" in refusal(FIRST, "--commands", "--json")
        assert "-n and --here select runs" in refusal(FIRST, "--here")
        assert "'0' is not a whole number (1 or more)" in refusal("-n", "0")
        assert "--commands needs a RUN" in refusal("--failed", "--commands")


class TestChoosing:
    def test_takes_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        elsewhere = tmp_path / "mine.jsonl"
        write(FIRST).rename(elsewhere)
        assert find.choose("mine.jsonl") == "mine.jsonl"
        assert find.choose(str(elsewhere)) == str(elsewhere)
        assert as_json(str(elsewhere)) == []
        for wrong, problem in (("./none", "there is no such file"), (str(tmp_path), "it is not a regular file")):
            with pytest.raises(UserError, match=problem):
                find.choose(wrong)
        elsewhere.write_text("no journal\n")
        assert "mine.jsonl: it does not start like a journal" in refusal(str(elsewhere))


class TestCommands:
    def test_of_the_failed_jobs_can_be_piped_in_again(self, program: Program) -> None:
        stdin = b"echo ok #: gpus=0 name=a\n printf 'x\xff\\n' >> out; test -e fixed #: after=a retries=1 name=b\n"
        assert program.run("--gpus", "0", "--ignore-occupancy", stdin=stdin).returncode == 1
        (row,) = as_json()
        run = str(row["run"])
        again = told(run, "--failed", "--commands")
        assert again == b" printf 'x\xff\\n' >> out; test -e fixed  #: retries=1 name=b\n"
        (program.directory / "fixed").touch()
        assert program.run("--gpus", "0", "--ignore-occupancy", stdin=again).returncode == 0
        assert (program.directory / "out").read_bytes() == b"x\xff\n" * 3
        assert told(run, "--commands").splitlines()[1].endswith(b"  #: retries=1 name=b after=a")

    def test_with_newlines_need_null(self) -> None:
        write(FIRST, events.JobsRead([job(1), job(2, b"cat <<E\nx\nE", gpus=2)]))
        problem = refusal(FIRST, "--commands")
        assert problem.endswith(
            "job 2 (line 2) contains a newline; separate jobs by NUL: use --null here and in the run that reads them"
        )
        assert told(FIRST, "--commands", "--null") == b"true\0cat <<E\nx\nE\n#: gpus=2\0"

    def test_that_no_option_can_follow_get_theirs_as_a_default(self) -> None:
        write(FIRST, events.JobsRead([job(1, b"echo a # why", mem=10 * 2**30), job(2)]))
        assert told(FIRST, "--commands") == b"#: mem=10G\necho a # why\n#:\ntrue\n"

    def test_never_run_without_what_they_come_after(self) -> None:
        first, second, third = job(1, name="a"), job(2, name="b", after=(1,)), job(3, after=(1, 2))
        dropped = events.JobDropped(third, "job 2 did not succeed")
        failed = ended(second, Outcome("failed", 1))
        write(FIRST, events.JobsRead([first, second, third]), *ended(first), *failed, dropped)
        problem = refusal(FIRST, "--not-started", "--commands")
        assert problem.endswith('job 3 depends on job 2 "b", which has not succeeded and is not selected; add --failed')
        assert told(FIRST, "--failed", "--not-started", "--commands") == b"true  #: name=b\ntrue  #: after=b\n"
        assert told(FIRST, "--commands").splitlines()[2] == b"true  #: after=a,b"

    def test_are_not_made_of_refused_lines(self) -> None:
        write_every_state()
        done = ask(FIRST, "--commands", "--not-started", "--cancelled")
        assert done.stdout == b"echo 4\necho 5\n"
        assert b"1 refused line cannot be printed" in done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spoiled") / "journal.jsonl"


def field_by_field() -> Iterator[bytes]:
    """Each field of each kind of event, with each kind of value."""
    found = records(golden())
    for at in {each["event"]: at for at, each in enumerate(found)}.values():
        for name in found[at].keys() - {"event"}:
            for value in (None, True, -1, 1.5, 1e300, "\ud800", "text", [None], [1], ["\ud800"], [[1]], {}, {"a": 1}):
                changed = [*found[:at], found[at] | {name: value}, *found[at + 1 :]]
                yield "".join(json.dumps(each) + "\n" for each in changed).encode()


@pytest.mark.unmeasured
def test_a_field_of_the_wrong_type_never_raises_later(place: Path) -> None:
    for data in field_by_field():
        check_all_commands(data, place)
