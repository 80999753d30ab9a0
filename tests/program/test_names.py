"""The program by its short name, and what it says to words that are neither files nor commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Program

SGS = Path(sys.executable).parent / "sgs"
pytestmark = pytest.mark.usefixtures("idle_gpus")


def sgs(program: Program, *args: str, stdin: str = "", **settings) -> "subprocess.CompletedProcess[str]":
    settings = {"cwd": program.directory, "timeout": 120, "capture_output": True, "text": True} | settings
    return subprocess.run([SGS, *args], input=stdin, check=False, **settings)


def test_the_short_name_runs_jobs_and_its_messages_name_it(program: Program) -> None:
    done = sgs(program, "--gpus", "0", stdin="echo $CUDA_VISIBLE_DEVICES\n")
    assert (done.returncode, done.stdout) == (0, "0\n")
    done = sgs(program, "--gpus", "0", "--halt", "now,fail=1", stdin="false\ntrue\n")
    assert "continue with: sgs --resume\n" in done.stderr
    assert "simple_gpu_scheduler" not in done.stderr
    assert "sgs: --gpus must be followed by GPU...; for example: sgs --gpus 0 1 2 <" in sgs(program, "--gpus").stderr
    assert "list runs with: sgs history" in sgs(program, "status", "none").stderr
    assert sgs(program, "--version").stdout.startswith("simple_gpu_scheduler 0.")


def test_help_uses_the_name_that_was_typed(program: Program) -> None:
    for words in ((), ("run",), ("stop",)):
        short = sgs(program, *words, "--help").stdout
        assert short.startswith("Usage: sgs ")
        assert "\n  sgs " in short.partition("Examples:")[2]
        both = "\n  `simple_gpu_scheduler` and `sgs` are the same program.\n"
        assert (both in short) == (not words)
        assert "simple_gpu_scheduler" not in short.replace(both, "")
        long = program.run(*words, "--help").stdout.decode()
        assert words or both in long
        assert "\n  simple_gpu_scheduler " in long.partition("Examples:")[2]


def test_each_name_completes_in_the_shell(program: Program) -> None:
    variable = {"_SGS_COMPLETE": "bash_complete", "COMP_WORDS": "sgs st", "COMP_CWORD": "1"}
    done = sgs(program, env=os.environ | variable)
    assert done.stdout.split() == ["plain,status", "plain,stop"]
    for shell in ("bash", "zsh", "fish"):
        script = sgs(program, env=os.environ | {"_SGS_COMPLETE": f"{shell}_source"}).stdout
        assert "_SGS_COMPLETE" in script
        assert "sgs" in script.replace("_SGS_COMPLETE", "")
        assert "simple_gpu_scheduler" not in script


def test_help_lists_the_commands_above_the_options(program: Program) -> None:
    shown = program.run("--help").stdout.decode()
    commands = shown.partition("Commands (see COMMAND --help):\n")[2].partition("\n\n")[0].splitlines()
    assert "  status " in "\n".join(commands)
    assert all(line.startswith("  ") and line[2] != " " for line in commands)  # a line each
    assert shown.index("Commands (see") < shown.index("--gpus")


def test_a_mistyped_command_starts_nothing_and_is_told_what_was_meant(program: Program) -> None:
    for words in (("statsu",), ("statsu", "--json"), ("--gpus", "0", "statsu")):
        done = program.run(*words, stdin="touch started\n")
        assert done.returncode == 2
        assert b"no such file or command 'statsu'; did you mean status? (see" in done.stderr
    assert b"put the command first: simple_gpu_scheduler status" in program.run("--gpus", "0", "status").stderr
    assert not (program.directory / "started").exists()


def test_a_command_line_is_told_of_run(program: Program) -> None:
    for options in ((), ("--lr", "0.1"), ("-c", "3"), ("--retry", "3")):
        done = sgs(program, "--gpus", "0", "sh", "train.sh", *options)
        assert done.returncode == 2
        line = " ".join(["sh train.sh", *options])
        assert f"no such file or command 'sh'; to run one command: sgs run -- {line} (see" in done.stderr
    script = program.directory / "train.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert "to run one command: sgs run -- ./train.sh --lr 0.1 (see" in sgs(program, "./train.sh", "--lr", "0.1").stderr
    assert "No such option --lr" in sgs(program, "train.sh", "--lr", "0.1").stderr


def test_sizes_of_a_few_bytes_are_refused_wherever_they_are_typed(program: Program) -> None:
    for option in ("--free-memory", "--max-used-memory"):
        done = program.run("--gpus", "0", option, "10", stdin="touch started\n")
        assert done.returncode == 2
        assert b"'%s': 10 bytes? write 10G (see" % option.encode() in done.stderr
    (program.directory / "jobs.txt").write_text("touch started\ntrue #: mem=10\n")
    done = program.run("--gpus", "0", "jobs.txt")
    assert done.returncode == 2
    assert b"line 2 of jobs.txt: mem: 10 bytes? write 10G" in done.stderr
    assert not (program.directory / "started").exists()


def test_an_option_that_is_nearly_one_is_suggested(program: Program) -> None:
    shown = program.run("--retry", "3", stdin="true\n").stderr
    assert b"No such option --retry. Did you mean --retries or --retry-delay? (see" in shown
