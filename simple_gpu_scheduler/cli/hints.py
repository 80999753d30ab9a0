"""What the user may have meant by an unknown option, or by a word that is not the file or command it should be."""

import os
import shlex
import shutil
from difflib import get_close_matches

from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Collection, Iterable, Sequence
from simple_gpu_scheduler.cli.commands import COMMANDS
from simple_gpu_scheduler.jobfile.interpreter import foreign_interpreter

_SHORTEST_PREFIX = 3
_LONGEST_SHOWN = 80
# What other programs call it.
_MEANT = {
    **dict.fromkeys(("ps", "queue", "jobs"), "status"),
    **dict.fromkeys(("ls", "list"), "status or history"),
    **dict.fromkeys(("kill", "rm", "delete"), "cancel"),
    "add": "submit",
    "watch": "status --watch",
    "log": "logs",
    **{word: f"--{word}" for word in ("help", "version", "resume", "follow")},
}
# What only a shell understands; blanks and quotes are not among it.
_FOR_A_SHELL = frozenset("|&;<>()$`*?[]{}~#!\n")
_QUOTED = frozenset(" \t\"'")
_FIRST_LINE = 256


def options_like(word: str, known: Iterable[str]) -> list[str]:
    """The options that an unknown one may stand for, the most similar first."""
    if not word.startswith("--"):
        return []
    candidates = list(known)
    prefixed = [name for name in candidates if name.startswith(word)]
    return list(dict.fromkeys([*get_close_matches(word, candidates, n=1, cutoff=0.75), *prefixed]))


def hint_at_first(words: Sequence[str], *, is_command_line: bool = False) -> str:
    """What is wrong with the first of FILES, if something else was meant by it; empty if it may be a file.

    `is_command_line`: options follow that this program does not have.
    """
    word = words[0]
    if word.endswith(".py") and os.path.isfile(word):  # run by a shell, its lines could do anything
        return f"'{word}' is a Python program, not a list of commands; {_to_run(['python3', *words])}"
    if os.path.lexists(word) or word == "-":
        is_program = is_command_line and os.path.isfile(word) and os.access(word, os.X_OK)
        return _to_run(words) if is_program and "/" in word else ""
    if word in COMMANDS:
        return f"put the command first: {PROGRAM} {word} ..."
    if meant := _MEANT.get(word.lower()):  # many are programs as well, but hardly any is meant for a GPU
        return f"no such file or command '{word}'; did you mean {meant}?"
    near = _near(word, COMMANDS)
    hints = [f"did you mean {near}?"] if near else []
    program, line = _unquoted(words)
    if shutil.which(program):
        word = program
        hints.append(_to_run(line))
    return f"no such file or command '{word}'; {' Or, '.join(hints)}" if hints else ""


def hint_at_submitted(word: str, options: Sequence[str] = ()) -> str:
    """What to do with a file that was submitted as if it were a command; empty if the word may be a command.

    `options` name the queue.
    """
    if not os.path.isfile(word) or os.access(word, os.X_OK) or shutil.which(word):
        return ""
    submit = f"{PROGRAM} submit {shlex.join(options)}".rstrip()
    with suppress(OSError), open(word, "rb") as file:
        words = ("python3",) if word.endswith(".py") else foreign_interpreter(file.read(_FIRST_LINE))
        if words:
            return f"{word} is a file, not a command; to run it: {submit} -- {shlex.join([*words, word])}"
    return f"{word} is a file, not a command; to add its lines: {submit} < {shlex.quote(word)}"


def hint_at_shell_line(word: str) -> str:
    """How to run a line for a shell that was typed as the name of a program; empty if it is not such a line."""
    if not (_FOR_A_SHELL | _QUOTED).intersection(word) or os.path.lexists(word) or shutil.which(word):
        return ""
    return f"to run a shell line: {PROGRAM} run -- {shlex.join(['sh', '-c', word])}"


def _unquoted(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The program of a command line, and its words, also where all of it or its start was typed as one word."""
    first, *others = words
    try:
        line = shlex.split(first)
    except ValueError:
        line = []
    if len(line) < 2:  # noqa: PLR2004 - a program and an argument
        return first, words
    return line[0], [*(("sh", "-c", first) if _FOR_A_SHELL.intersection(first) else line), *others]


def _near(word: str, known: Collection[str]) -> str:
    lower = word.lower()
    prefixed = [name for name in known if len(word) >= _SHORTEST_PREFIX and name.startswith(lower)]
    return next(iter(prefixed or get_close_matches(lower, known, n=1, cutoff=0.65)), "")


def _to_run(words: Sequence[str]) -> str:
    typed = shlex.join(words)
    shown = typed if len(typed) <= _LONGEST_SHOWN else f"{shlex.quote(words[0])} ..."
    return f"to run one command: {PROGRAM} run -- {shown}"
