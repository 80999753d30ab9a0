"""What is suggested for words and options that are none."""

import os
from pathlib import Path

import pytest

from simple_gpu_scheduler.cli import hints
from simple_gpu_scheduler.cli.click_extras import from_first_word
from simple_gpu_scheduler.cli.commands import COMMANDS
from simple_gpu_scheduler.cli.commands.schedule import run
from simple_gpu_scheduler.cli.hints import hint_at_first, hint_at_shell_line, hint_at_submitted, options_like

OPTIONS = [name for option in run.options for name in option.names if name.startswith("--")]


@pytest.fixture(autouse=True)
def _there(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hints.shutil, "which", lambda word: word if word in ("python", "stat") else None)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("statsu", "status"),
        ("stat", "status"),
        ("histroy", "history"),
        ("hist", "history"),
        ("sumbit", "submit"),
        ("gpu", "gpus"),
        ("cancle", "cancel"),
        ("Status", "status"),
        ("rnu", "run"),
    ],
)
def test_a_mistyped_command_is_near_one(typed: str, meant: str) -> None:
    assert hint_at_first([typed]).startswith(f"no such file or command '{typed}'; did you mean {meant}?")


@pytest.mark.parametrize(
    "word", ["commands.txt", "night", "a/b", "jobs.txt", "gpu.fifo", "my jobs.txt", "a 'b", " ", "-"]
)
def test_what_looks_like_a_missing_file_is_not_guessed_at(word: str) -> None:
    assert hint_at_first([word]) == ""


def test_a_file_is_a_file_whatever_its_name(tmp_path) -> None:
    for name in (*COMMANDS, "statsu", "python"):
        (tmp_path / name).touch()
        assert hint_at_first([name, "train.py"]) == ""


def test_a_python_program_is_no_list_of_commands(tmp_path) -> None:
    (tmp_path / "train.py").touch()
    hint = hint_at_first(["train.py", "a b"])
    assert hint == (
        "'train.py' is a Python program, not a list of commands; "
        "to run one command: simple_gpu_scheduler run -- python3 train.py 'a b'"
    )
    assert hint_at_first(["missing.py"]) == ""


def test_a_program_is_hinted_at_with_its_words_as_the_shell_needs_them() -> None:
    hint = hint_at_first(["python", "train.py", "a b"])
    assert hint.endswith("to run one command: simple_gpu_scheduler run -- python train.py 'a b'")
    assert hint_at_first(["python", *["x" * 30] * 3]).endswith("run -- python ...")
    assert "did you mean status? Or, to run one command: simple_gpu_scheduler run -- stat" in hint_at_first(["stat"])


def test_a_command_line_in_quotes_is_hinted_at_as_one_without() -> None:
    for typed in (["python train.py --lr 1"], ["python", "train.py", "--lr", "1"]):
        hint = "no such file or command 'python'; to run one command: simple_gpu_scheduler run -- "
        assert hint_at_first(typed) == f"{hint}python train.py --lr 1"
    assert hint_at_first(["python 'a b'", "c"]).endswith(" run -- python 'a b' c")
    assert hint_at_first(["python a > log"]).endswith(" run -- sh -c 'python a > log'")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("ps queue jobs", "status"),
        ("ls list", "status or history"),
        ("kill rm delete", "cancel"),
        ("help", "--help"),
        ("version", "--version"),
        ("resume", "--resume"),
        ("add", "submit"),
        ("follow", "--follow"),
        ("log", "logs"),
        ("watch", "status --watch"),
    ],
)
def test_the_words_of_other_programs_are_understood(
    words: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints.shutil, "which", lambda word: word)
    for word in words.split():
        assert hint_at_first([word, "3"]) == f"no such file or command '{word}'; did you mean {meant}?"
        (tmp_path / word).touch()
        assert hint_at_first([word]) == ""


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--retry", ["--retries", "--retry-delay"]),
        ("--gpu", ["--gpus"]),
        ("--log", ["--logs", "--logs-failed-only"]),
        ("--time-out", ["--timeout"]),
        ("--epochs", []),
        ("--lr", []),
        ("-x", []),
    ],
)
def test_options_that_are_like_it(typed: str, meant: list[str]) -> None:
    assert options_like(typed, OPTIONS)[: len(meant) or None] == meant


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("python train.py --lr 1", "python train.py --lr 1"),
        ("--gpus 0 1 python train.py --gpus 2 3", "python train.py --gpus 2 3"),
        ("--gpus=0 -q --timeout 5m --retries=2 python", "python"),
        ("--resume 20260102-0304 python", "python"),
        ("--resume python", ""),
        ("--resume -q python", "python"),
        ("--unknown python", "python"),
        ("--gpus 0", ""),
        ("", ""),
    ],
)
def test_the_words_from_the_first_that_is_no_option(line: str, words: str) -> None:
    assert from_first_word(line.split(), run.options) == words.split()


def test_nothing_is_asked_of_the_file_system_that_may_hang(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert hint_at_first(["pipe"], is_command_line=True) == ""


def test_a_file_that_is_submitted_like_a_command_is_one_of_lines_or_of_another_language(tmp_path) -> None:
    (tmp_path / "more.txt").write_text("echo one\n")
    said = "more.txt is a file, not a command; to add its lines: simple_gpu_scheduler submit"
    assert hint_at_submitted("more.txt") == f"{said} < more.txt"
    assert hint_at_submitted("more.txt", ("--to", "my q")) == f"{said} --to 'my q' < more.txt"
    (tmp_path / "train").write_text("#!/usr/bin/env python3\n")
    assert hint_at_submitted("train").endswith("to run it: simple_gpu_scheduler submit -- python3 train")
    (tmp_path / "train.py").touch()
    assert hint_at_submitted("train.py").endswith("to run it: simple_gpu_scheduler submit -- python3 train.py")


def test_what_may_be_a_command_is_submitted(tmp_path) -> None:
    (tmp_path / "python").touch()
    (tmp_path / "run.sh").touch(0o755)
    (tmp_path / "more.txt").touch()
    for word in ("python", "./run.sh", "missing", str(tmp_path), "more.txt #: gpus=0", "cat more.txt"):
        assert hint_at_submitted(word) == ""


def test_a_shell_line_is_no_program(tmp_path) -> None:
    (tmp_path / "my program").touch()
    assert hint_at_shell_line("echo hi; echo 'a b'") == (
        "to run a shell line: simple_gpu_scheduler run -- sh -c 'echo hi; echo '\"'\"'a b'\"'\"''"
    )
    assert hint_at_shell_line("true|true").endswith(" -- sh -c 'true|true'")
    for word in ("no-such-command", "my program", "./plain", "python"):
        assert hint_at_shell_line(word) == ""
