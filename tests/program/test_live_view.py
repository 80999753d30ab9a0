"""The live view, read from the screen of a real terminal."""

import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import UNMEASURED, Program, until
from tests.support.nvml import GIB, StandIn, a_gpu
from tests.support.processes import command_lines, directory_of, read
from tests.support.terminal import Terminal

HEADINGS = "LAST OUTPUT"
WAIT = "until test -e go; do sleep 0.02; done"


@pytest.fixture
def terminal_of(tmp_path: Path, nvml: StandIn) -> Iterator[Callable[..., Terminal]]:
    """Opens terminals; what stands in `jobs` is there as a file."""
    opened: list[Terminal] = []

    def open_one(jobs: str = "", environment: dict[str, str] | None = None, **size: int) -> Terminal:
        (tmp_path / "jobs").write_text(jobs)
        nvml.show([a_gpu(index)._replace(utilization=97, temperature=71, power=312_000) for index in range(4)])
        own = {name: value for name, value in os.environ.items() if name != "CI"}  # where there would be no view
        variables = own | dict(nvml.environment) | (environment or {})
        opened.append(Terminal(tmp_path, {**variables, "PYTHONPATH": os.getcwd()}, **size))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


@pytest.fixture
def go(tmp_path: Path) -> Callable[[], None]:
    """Lets the jobs that wait for it continue."""
    return (tmp_path / "go").touch


def rows(terminal: Terminal) -> list[str]:
    """The lines of the view, from its headings on."""
    lines = terminal.screen().split("\n")
    starts = [at for at, line in enumerate(lines) if HEADINGS in line]
    assert len(starts) == 1, "\n".join(lines)
    return lines[starts[0] :]


def is_drawn(terminal: Terminal, columns: int) -> bool:
    """Whether it is there once, and as wide as it may be."""
    lines = terminal.screen().split("\n")
    return sum(HEADINGS in line for line in lines) == 1 and any(len(line) == columns - 1 for line in lines)


def test_it_has_a_row_for_each_gpu_with_its_job_and_what_it_printed_last(
    terminal_of: Callable[..., Terminal], go: Callable[[], None]
) -> None:
    jobs = (
        f"printf 'start\\n 10%%\\r 45%%\\r'; {WAIT}  #: name=resnet\n"
        f"test $SGS_ATTEMPT = 2 || exit 1; echo second >&2; {WAIT}  #: retries=1\n"
        f"echo one; {WAIT}  #: gpus=0\n"
    )
    terminal = terminal_of(jobs)
    terminal.type("simple_gpu_scheduler --gpus 0-2 --progress live jobs")
    terminal.shows("second")
    terminal.shows("45%")
    terminal.shows("97 %")
    shown = rows(terminal)
    assert re.fullmatch(r"GPU  JOB +TRY +TIME  UTIL +MEMORY +TEMP  POWER  LAST OUTPUT", shown[0])
    vitals = r"97 %  0\.0 / 80\.0 GiB  71 °C  312 W"
    assert re.fullmatch(rf"0    1 resnet +1  \d\.\d s  {vitals}  45%", shown[1])
    assert re.fullmatch(rf"1    2 test.{{1,30}} +2  \d\.\d s  {vitals}  second", shown[2])
    assert re.fullmatch(rf"2 +{vitals}  no job", shown[3])
    assert re.fullmatch(r"cpu  3 echo.{1,30} +1  \d\.\d s +one", shown[4])
    assert shown[-1].endswith("0 of 3 done, 3 running, 0 waiting")
    go()
    terminal.shows("3 succeeded, 0 failed, 0 timed out, 0 not started in")
    assert HEADINGS not in terminal.screen()
    until(lambda: terminal.screen().endswith("\n$"), "the shell is there again")


def test_progress_is_counted_and_the_last_failures_are_shown_with_what_they_printed(
    terminal_of: Callable[..., Terminal], go: Callable[[], None]
) -> None:
    jobs = f"true\necho one; echo two; echo three; echo four; exit 7\n/no/such/program\n{WAIT}\n{WAIT}\n"
    terminal = terminal_of(jobs)
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("3 of 5 done, 2 failed, 1 running, 1 waiting")
    terminal.shows("no/such/program: not found")
    shown = "\n".join(rows(terminal))
    assert "job 2 (line 2 of jobs) failed with exit code 7 after" in shown
    assert "    two\n    three\n    four\n" in shown
    assert "    one\n" not in shown
    assert terminal.screen().count("failed with exit code 127") == 2  # where it happened, and among the last failures
    go()
    terminal.shows("3 succeeded, 2 failed")
    assert terminal.screen().count("failed with exit code 127") == 1


@pytest.mark.parametrize("size", [(60, 30), (140, 30), (100, 12), (45, 12)], ids=str)
def test_it_is_drawn_once_after_the_terminal_was_made_another_size(
    terminal_of: Callable[..., Terminal], go: Callable[[], None], size: tuple[int, int]
) -> None:
    terminal = terminal_of(f"echo {'x' * 300}; {WAIT}\n" * 3)
    terminal.type("simple_gpu_scheduler --gpus 0-2 --progress live jobs")
    terminal.shows("xxxx…")
    for columns, lines in (size, (100, 30)):
        terminal.resize(columns, lines)
        until(functools.partial(is_drawn, terminal, columns), f"it is drawn once, {columns} wide:\n{terminal.screen()}")
        assert len(rows(terminal)) == 5
    go()
    terminal.shows("3 succeeded")
    assert HEADINGS not in terminal.screen()


def test_the_first_ctrl_c_is_shown_in_the_view_and_the_second_leaves_the_screen_clean(
    terminal_of: Callable[..., Terminal],
) -> None:
    terminal = terminal_of(f"{WAIT}\n" * 3)
    terminal.type("simple_gpu_scheduler --gpus 0-1 --progress live jobs; echo code $?")
    terminal.shows("2 running, 1 waiting")
    terminal.press("C-c")
    terminal.shows("Ctrl-C: stopping; no new jobs, waiting for 2 running jobs")
    terminal.shows("\nstopping; no new jobs\n")
    assert rows(terminal)[-1].endswith("2 running, 1 waiting")
    terminal.press("C-c")
    terminal.shows("code 130")
    assert HEADINGS not in terminal.screen()
    terminal.type("echo $((6 * 7))")
    terminal.shows("\n42\n$")


def test_it_survives_being_stopped_and_continued(terminal_of: Callable[..., Terminal], go: Callable[[], None]) -> None:
    terminal = terminal_of(f"{WAIT}\n{WAIT}\n")
    terminal.type("simple_gpu_scheduler --gpus 0-1 --progress live jobs; echo code $?")
    terminal.shows("2 running, 0 waiting")
    terminal.press("C-z")
    terminal.shows("Stopped")
    terminal.type("echo $((6 * 7))")
    terminal.shows("\n42\n")
    terminal.type("fg")
    until(lambda: terminal.screen().count(HEADINGS) == 2, "what was drawn before stays, and is drawn again below")
    screen = terminal.screen()
    assert screen.index("Stopped") < screen.index("\n42\n") < screen.rindex(HEADINGS)
    terminal.shows("1.")  # time passes
    go()
    terminal.shows("2 succeeded")
    assert "42" in terminal.screen()


def test_in_the_background_it_leaves_the_terminal_alone(
    terminal_of: Callable[..., Terminal], go: Callable[[], None]
) -> None:
    terminal = terminal_of(f"false\n{WAIT}\nfalse\n{WAIT}\n")
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("1 running, 2 waiting")
    terminal.press("C-z")
    terminal.shows("Stopped")
    terminal.type("clear; bg")
    terminal.type("sleep 1; echo $((6 * 7))")
    terminal.shows("\n42\n")
    assert HEADINGS not in terminal.screen()
    terminal.type("fg")
    terminal.shows(HEADINGS)
    go()
    terminal.shows("2 succeeded, 2 failed")


def test_a_view_that_is_begun_in_the_background_is_lines(
    terminal_of: Callable[..., Terminal], go: Callable[[], None]
) -> None:
    terminal = terminal_of(f"{WAIT}\n")
    terminal.type("simple_gpu_scheduler --gpus 0 --logs logs jobs &")
    terminal.shows("Processing command")
    go()
    terminal.shows("1 succeeded")


def test_a_kill_leaves_a_terminal_that_can_be_used(terminal_of: Callable[..., Terminal], tmp_path: Path) -> None:
    # Coverage of a process that ends by a signal would be a torn file.
    terminal = terminal_of("echo $PPID > keeper; sleep 100\n", dict.fromkeys(os.environ.keys() - UNMEASURED.keys(), ""))
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("1 running")
    terminal.type("")  # what is typed meanwhile disturbs nothing for long
    until(lambda: len(rows(terminal)) == 3, "it is drawn in its place")
    pid = next(
        pid
        for pid, words in command_lines().items()
        if b"simple_gpu_scheduler\0--gpus" in words
        and directory_of(pid) == str(tmp_path)
        # It has a terminal, unlike its keeper.
        and int(read(pid, "stat").rpartition(b") ")[2].split()[4]) > 0
    )
    os.kill(pid, 9)
    terminal.shows("Killed")
    terminal.type("echo $((6 * 7))")
    terminal.shows("\n42\n$")


def test_the_report_of_a_bug_stands_on_a_clean_screen(terminal_of: Callable[..., Terminal], tmp_path: Path) -> None:
    terminal = terminal_of(f"{WAIT}; false\n")
    (tmp_path / "broken.py").write_text(
        "from simple_gpu_scheduler.run import ends\n"
        "def broken(*_args): raise AssertionError('this is the bug')\n"
        "ends.conclude = broken\n"
        "from simple_gpu_scheduler.cli.main import simple_gpu_scheduler as run\nrun()\n"
    )
    terminal.type(f"{sys.executable} broken.py --gpus 0 --progress live jobs; echo code $?")
    terminal.shows("1 running")
    (tmp_path / "go").touch()
    terminal.shows("code 3")
    assert "this is a bug in the program" in terminal.screen()
    assert HEADINGS not in terminal.screen()


def test_what_a_job_prints_cannot_harm_the_terminal(
    terminal_of: Callable[..., Terminal], go: Callable[[], None]
) -> None:
    hostile = r"\033[2J\033[H\033]0;owned\007\033[31mred\033[0m \342\200\256evil \377\376 \033P1q\a\b\t\033[6n"
    terminal = terminal_of(f"printf '{hostile}'; {WAIT}\n", columns=130)
    terminal.type("echo before; simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("red")
    assert "before" in terminal.screen()
    assert r"red \u202eevil \xff\xfe 1q\x07\x08" in rows(terminal)[1]
    go()
    terminal.shows("1 succeeded")


def test_a_redirected_stdout_gets_all_that_jobs_print_there_and_their_stderr_goes_to_logs(
    terminal_of: Callable[..., Terminal], go: Callable[[], None], tmp_path: Path
) -> None:
    terminal = terminal_of(f"echo result; echo trouble >&2; {WAIT}\n")
    terminal.type("simple_gpu_scheduler --gpus 0 jobs > out.txt")
    terminal.shows("trouble")
    assert "what the jobs write to stderr goes to" in terminal.screen()
    assert rows(terminal)[1].endswith("trouble")
    assert (tmp_path / "out.txt").read_text() == "result\n"
    go()
    terminal.shows("1 succeeded")
    terminal.type("clear; simple_gpu_scheduler logs 1")
    terminal.shows("\ntrouble\n")
    assert "\nresult\n" not in terminal.screen()


@pytest.mark.parametrize(
    ("environment", "size", "end"),
    [
        ({"TERM": "dumb"}, {}, ""),
        ({"CI": "true"}, {}, ""),
        ({}, {"columns": 30}, ""),
        ({}, {"lines": 5}, ""),
        ({}, {}, " 2>&1 | cat"),
    ],
    ids=str,
)
def test_where_nothing_can_be_drawn_there_are_lines(
    terminal_of: Callable[..., Terminal], environment: dict[str, str], size: dict[str, int], end: str
) -> None:
    terminal = terminal_of("true\n", environment, **size)
    terminal.type(f"simple_gpu_scheduler --gpus 0 --progress live jobs{end}")
    terminal.shows("1 succeeded")
    terminal.type(f"clear; simple_gpu_scheduler --gpus 0 --logs x jobs{end}")
    terminal.shows("Processing command")
    terminal.shows("1 succeeded")
    assert "done" not in terminal.screen(history=True)


def test_with_the_output_on_the_same_terminal_there_are_lines(terminal_of: Callable[..., Terminal]) -> None:
    terminal = terminal_of("echo hello\n")
    terminal.type("simple_gpu_scheduler --gpus 0 jobs")
    terminal.shows("\nhello\n")
    assert "Processing command `echo hello` on gpu 0" in terminal.screen()
    terminal.type("clear; simple_gpu_scheduler --gpus 0 --progress live --output tag jobs; echo code $?")
    terminal.shows("code 2")
    assert "cannot share a terminal" in terminal.screen()


def test_tags_are_coloured_on_a_terminal_that_takes_colours(terminal_of: Callable[..., Terminal]) -> None:
    terminal = terminal_of("echo hello\n")
    terminal.type(
        "simple_gpu_scheduler --gpus 0 --output tag jobs; NO_COLOR=1 simple_gpu_scheduler --gpus 0 --output tag jobs"
    )
    until(lambda: terminal.screen().count("[1] hello") == 2)
    assert "\x1b[33m[1]\x1b[39m hello" in terminal.screen(styled=True)
    assert "\n[1] hello" in terminal.screen(styled=True)


@pytest.mark.parametrize("no_colour", ["", "1"])
def test_colours_are_for_those_who_want_them(
    terminal_of: Callable[..., Terminal], go: Callable[[], None], no_colour: str
) -> None:
    terminal = terminal_of(f"false\n{WAIT}\n", {"NO_COLOR": no_colour})
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("last failures:")
    assert ("\x1b[31m" in terminal.screen(styled=True)) == (not no_colour)
    go()
    terminal.shows("1 succeeded, 1 failed")


def test_a_cancelled_job_is_not_among_the_last_failures(
    terminal_of: Callable[..., Terminal], go: Callable[[], None], program: Program
) -> None:
    terminal = terminal_of(f"false\nsleep 1000\n{WAIT}\n")
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("1 of 3 done, 1 failed, 1 running, 1 waiting")
    program.run("cancel", "2")
    terminal.shows("2 of 3 done, 1 failed, 1 cancelled, 1 running")
    above, below = terminal.screen().split("last failures:")
    assert "job 2 (line 2 of jobs) was cancelled after" in above
    assert "job 1 (line 1 of jobs) failed" in below
    assert "job 2" not in below
    go()
    terminal.shows("1 succeeded, 1 failed")


def test_why_jobs_wait_stands_at_the_gpu_and_goes_away(
    terminal_of: Callable[..., Terminal], nvml: StandIn, go: Callable[[], None]
) -> None:
    terminal = terminal_of(f"{WAIT}\n")
    nvml.show([a_gpu(0)._replace(used=20 * GIB)])
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("20.0 GiB used by others")
    assert rows(terminal)[1].startswith("0 ")
    nvml.show([a_gpu(0)])
    terminal.shows("1 running")
    terminal.shows_no_more("20.0 GiB used by others")
    go()
    terminal.shows("1 succeeded")


def test_a_resumed_run_shows_what_it_had(terminal_of: Callable[..., Terminal], go: Callable[[], None]) -> None:
    terminal = terminal_of(f"true\nfalse\n{WAIT}\n{WAIT}\n")
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("1 running, 1 waiting")
    terminal.press("C-c")
    terminal.shows("Ctrl-C again to end it")  # two signals that come at once are one
    terminal.press("C-c")
    terminal.shows("1 not started, 1 interrupted in")
    terminal.type("clear; simple_gpu_scheduler --resume --progress live")
    terminal.shows("2 of 4 done, 1 failed, 1 running, 1 waiting")
    go()
    terminal.shows("3 succeeded, 1 failed")


def test_at_80_columns_what_the_commands_of_a_sweep_share_is_cut_first(
    terminal_of: Callable[..., Terminal], go: Callable[[], None]
) -> None:
    shared = ": python3 train.py --data /data/imagenet --epochs 100 --output /scratch/me/runs"
    terminal = terminal_of(
        "".join(f"{shared} --lr {lr}; {WAIT}\n" for lr in ("0.25", "0.75"))
        + "".join(f"{shared} --lr {lr}; exit 1\n" for lr in ("33", "66")),
        columns=80,
    )
    terminal.type("simple_gpu_scheduler --gpus 0-3 --progress live jobs")
    terminal.shows("2 failed, 2 running")
    *_, failures = terminal.screen().split("last failures:")
    shown = rows(terminal)
    for row, lr in zip(shown[1:3], ("0.25", "0.75"), strict=True):
        assert re.match(rf"\d +\d .*--lr {lr}; .*GiB$", row), "nothing was printed, so it has more room"
    assert all(re.search(rf"\d s: .*{lr}", failures) for lr in ("33", "66"))
    go()
    terminal.shows("2 succeeded, 2 failed")


def test_a_paused_run_says_so(terminal_of: Callable[..., Terminal], go: Callable[[], None], program: Program) -> None:
    terminal = terminal_of(f"{WAIT}\n{WAIT}\n")
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("1 running, 1 waiting")
    program.run("pause")
    terminal.shows("\npaused\n")
    program.run("continue")
    terminal.shows_no_more("\npaused\n")
    go()
    terminal.shows("2 succeeded")


@pytest.fixture
def terminal(tmp_path: Path, nvml: StandIn) -> Iterator[Terminal]:
    variables = UNMEASURED | dict(nvml.environment)
    variables.pop("CI", None)  # where there would be no view
    opened = Terminal(tmp_path, {**variables, "PYTHONPATH": os.getcwd()})
    yield opened
    opened.close()


def test_gpus_that_do_not_exist_are_reported_in_a_sentence_under_the_live_view(terminal: Terminal) -> None:
    (terminal.directory / "jobs").write_text("true\n")
    terminal.type("simple_gpu_scheduler --gpus 9 --progress live jobs; echo code $?")
    terminal.shows("code 2")
    assert "there is no GPU 9" in terminal.screen()
    assert "Traceback" not in terminal.screen(history=True)


def test_a_driver_that_hangs_holds_back_no_message(terminal: Terminal, nvml: StandIn) -> None:
    (terminal.directory / "jobs").write_text(f"until test -e fail; do sleep 0.02; done; false\n{WAIT}\n")
    terminal.type("simple_gpu_scheduler --gpus 0-1 --no-samples --progress live jobs; echo code $?")
    terminal.shows("2 running")
    terminal.shows("30 °C")
    nvml.show([a_gpu(index) for index in range(4)], delays={"nvmlDeviceGetTemperature": 20_000_000})
    calls = nvml.calls("nvmlDeviceGetTemperature")
    until(functools.partial(_is_slow, nvml, calls))
    (terminal.directory / "fail").touch()
    until(lambda: "failed with exit code 1" in terminal.screen(), "the failure is shown")
    assert nvml.calls("nvmlDeviceGetTemperature") == calls + 1, "the driver has not answered yet"
    (terminal.directory / "go").touch()
    terminal.shows("code 1")


def _is_slow(nvml: StandIn, calls: int) -> bool:
    return nvml.calls("nvmlDeviceGetTemperature") > calls


def test_the_last_failures_show_what_the_failed_attempt_printed(terminal: Terminal) -> None:
    job = f"test $SGS_ATTEMPT = 1 && {{ echo went wrong; exit 1; }}; echo all is well; {WAIT}\n"
    (terminal.directory / "jobs").write_text(job)
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live --retries 1 --retry-delay 0.8 jobs")
    terminal.shows("\n    went wrong\n")
    terminal.shows("  all is well\n")
    until(lambda: "\n    went wrong\n" in terminal.screen(), terminal.screen())
    assert "\n    all is well\n" not in terminal.screen()
    (terminal.directory / "go").touch()
    terminal.shows("1 succeeded")


def test_a_message_from_the_background_wipes_nothing_out(terminal: Terminal) -> None:
    (terminal.directory / "jobs").write_text(f"{WAIT}; false\nuntil test -e end; do sleep 0.02; done\n")
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("1 running, 1 waiting")
    terminal.press("C-z")
    terminal.shows("Stopped")
    terminal.type(r"bg; clear; seq 101 120; printf '\033[3H'")  # as an editor has text below the cursor
    terminal.shows("120")
    (terminal.directory / "go").touch()
    terminal.shows("failed with exit code 1")
    assert "120" in terminal.screen()
    (terminal.directory / "end").touch()


def test_after_ctrl_s_the_newest_messages_and_the_summary_are_there(terminal: Terminal) -> None:
    script = """
import os, time
from simple_gpu_scheduler.events import Noticed, RunEnded
from simple_gpu_scheduler.display.live.view import Live
from simple_gpu_scheduler.display.lines import EventWords
live = Live(EventWords(), list)
open("begun", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
for number in range(6000):
    live.take(Noticed(f"message {number} " + "x" * 1000))
live.take(RunEnded(0, 6000, 0, 0, 1.0, all_read=True, code=1))
open("told", "w").close()
live.close()
"""
    (terminal.directory / "view.py").write_text(script)
    terminal.type(f"{sys.executable} view.py; echo code $?")
    until((terminal.directory / "begun").exists)
    terminal.press("C-s")
    (terminal.directory / "go").touch()
    until((terminal.directory / "told").exists)
    terminal.press("C-q")
    terminal.shows("code 0")
    assert "6000 failed" in terminal.screen()
    assert "message 5999" in terminal.screen(history=True)
