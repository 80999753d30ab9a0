"""Whether a file whose first line is `#!` is a list of commands or the program of another language."""

from itertools import dropwhile

from simple_gpu_scheduler.base.values import Sequence

_SHELLS = frozenset(
    ("sh", "ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "rbash", "tcsh", "yash", "zsh")
)
# These read a list of commands, so that the list itself can be executed.
_READERS = frozenset(("sgs", "simple_gpu_scheduler", "parallel", "xargs"))
_LISTED = _SHELLS | _READERS


def foreign_interpreter(text: bytes) -> Sequence[str]:
    """The interpreter of a program in another language, with its options; empty if it may be a list of commands."""
    if not text.startswith(b"#!"):
        return ()
    words = text[2:].partition(b"\n")[0].decode("utf-8", "backslashreplace").split()
    if not words or not words[0].startswith("/"):  # a note
        return ()
    if _name(words[0]) == "env":
        # Of all words after `env`, since some of its options have a value.
        words = list(dropwhile(lambda word: word.startswith("-") or "=" in word, words[1:]))
        return () if any(_name(word) in _LISTED for word in words) else words
    return () if _name(words[0]) in _LISTED else words


def _name(path: str) -> str:
    return path.rpartition("/")[2]
