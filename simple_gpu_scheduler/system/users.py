"""Names of users and of the programs they run. It reads /proc and the user database, and judges nothing."""

import os
import pwd
import re


def owner(pid: int) -> int:
    """The uid of a process; -1 when there is none."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:  # it has just ended
        return -1


def user_name(uid: int) -> str:
    """The name of a user; the number if there is no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}" if uid >= 0 else "an unknown user"


def user_id(name: str) -> int:
    """The uid of a user; `me` is the current user. A ValueError says that there is none."""
    if name == "me":
        return os.getuid()
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise ValueError(f"there is no user '{name}'; use a user name or me") from None


def program(pid: int) -> str:
    """The name of the program that a process runs."""
    return _read(f"/proc/{pid}/comm").strip() or "?"


def command_name(pid: int) -> str:
    """What a process runs, in a word: `train.py` for `python train.py` and for `sh -c 'python train.py'`."""
    words = [word for word in _read(f"/proc/{pid}/cmdline").split("\0") if word]
    return _name_of_command(words) or program(pid)


def _name_of_command(words: list[str]) -> str:
    """The script of an interpreter, the command of a shell, else the program."""
    while words and re.fullmatch(r"\w+=.*", words[0], re.DOTALL):  # of the shell: VARIABLE=value COMMAND
        words = words[1:]
    if not words:
        return ""
    name = os.path.basename(words[0])
    arguments = [word for word in words[1:] if not word.startswith("-")]
    if name in ("sh", "dash", "bash", "zsh") and "-c" in words[1:-1]:
        return _name_of_command(words[words.index("-c") + 1].split())
    if name.startswith("python") and arguments:
        return os.path.basename(arguments[0])
    return name


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(4096).decode("utf-8", "replace")
    except OSError:  # it has just ended
        return ""
