"""What a stop ended is interrupted, and not failed, wherever jobs are counted or their ends are reported."""

import json
import re
import signal
from collections.abc import Callable

import pytest

from tests.conftest import Program, has_text, until

Ask = Callable[..., str]

# One that fails by itself before the stop and one that does after it, both with attempts left; two that it ends.
JOBS = """\
true
false #: retries=3
touch runs; until [ -e go ]; do sleep 0.01; done; exit 3 #: retries=1
touch runs2; exec sleep 1000
touch runs3; trap 'exit 1' TERM; while :; do sleep 0.01; done
true
"""
NOTIFY = "cat >> told; env | grep ^SGS_INTERRUPTED >> told"


@pytest.fixture
def ask(program: Program) -> Ask:
    def ask(*args: str) -> str:
        done = program.run(*args)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    return ask


def test_what_a_stop_ended_is_interrupted_everywhere(program: Program, ask: Ask) -> None:
    directory = program.directory
    (directory / "notify").write_text(f"#!/bin/sh\n{NOTIFY}\n")
    (directory / "notify").chmod(0o755)
    options = ("--gpus", "0-3", "--retry-delay", "1h", "--notify", "./notify", "--notify-on", "end,fail")
    with (directory / "words").open("wb") as words:
        process = program.start(*options, stderr=words)
        program.feed(process, JOBS)
        until(lambda: all((directory / name).exists() for name in ("runs", "runs2", "runs3")), "they run")
        until(has_text(directory / "words", "failed with exit code 1"), "one has failed")
        process.send_signal(signal.SIGINT)
        until(has_text(directory / "words", "Ctrl-C: stopping"), "it is stopping")
        (directory / "go").touch()
        until(has_text(directory / "words", "failed with exit code 3"), "another has failed")
        counts = json.loads(ask("status", "--json"))[0]["counts"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130
    assert sum(counts.values()) == 6
    said = (directory / "words").read_text()
    ends = re.findall(r"^job (\d) \(line \d\) (.+?)(?: after .+?)?(, retrying)?: ", said, re.MULTILINE)
    assert sorted(ends) == [
        ("2", "failed with exit code 1", ", retrying"),
        ("2", "was interrupted before its next attempt", ""),
        ("3", "failed with exit code 3", ""),
        ("3", "was interrupted before its next attempt", ""),
        ("4", "was interrupted", ""),
        ("5", "was interrupted", ""),
    ]
    counted = re.search(
        r"^(\d) succeeded, 0 failed, 0 timed out, (\d) not started, 4 interrupted in", said, re.MULTILINE
    )
    assert counted
    succeeded, waiting = int(counted[1]), int(counted[2])
    assert (succeeded + waiting, "4 jobs left" in said or "5 jobs left" in said) == (2, True)

    [report] = json.loads(ask("status", "--json"))
    expected = {"succeeded": succeeded, "waiting": waiting, "interrupted": 4}
    assert {state: count for state, count in report["counts"].items() if count} == {
        k: v for k, v in expected.items() if v
    }
    assert f"{waiting} waiting, {succeeded} succeeded, 0 failed, 0 not started, 4 interrupted\n" in ask("status")
    [row] = json.loads(ask("history", "--json"))
    assert (row["failed"], row["interrupted"], row["waiting"]) == (0, 4, waiting)
    jobs = {job["job"]: job for job in json.loads(ask("history", report["run"], "--json"))}
    assert [jobs[number]["state"] for number in (2, 3, 4, 5)] == ["interrupted"] * 4
    assert [jobs[number]["code"] for number in (2, 3, 4, 5)] == [1, 3, None, None], "how it ended by itself is kept"
    assert "SIGTERM" not in ask("history", report["run"])
    assert len(json.loads(ask("history", report["run"], "--waiting", "--json"))) == 4 + waiting
    assert json.loads(ask("report", report["run"], "--json"))["outcomes"]["interrupted"] == 4
    assert "4 interrupted" in ask("report", report["run"])
    told = (directory / "told").read_text()
    assert '"event": "fail"' not in told
    assert '"failed": 0' in told
    assert "SGS_INTERRUPTED=4" in told


def test_what_was_interrupted_waits_once_the_run_is_resumed(program: Program, ask: Ask) -> None:
    process = program.start("--gpus", "0")
    program.feed(process, "[ -e second ] || { touch first; exec sleep 1000; }\n")
    until((program.directory / "first").exists, "it runs")
    process.terminate()
    assert process.wait(timeout=120) == 143
    (program.directory / "second").touch()
    assert program.run("--resume").returncode == 0
    [report] = json.loads(ask("status", "--json"))
    assert {state: count for state, count in report["counts"].items() if count} == {"succeeded": 1}
