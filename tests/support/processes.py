"""The processes of this machine, as /proc shows them. Each may end while it is looked at, those of other tests too."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def read(pid: int, name: str) -> bytes:
    """Its file of this name; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def command_line(pid: int) -> bytes:
    """Its words, each ended by NUL; empty if it has ended."""
    return read(pid, "cmdline")


def command_lines() -> dict[int, bytes]:
    """Those of all processes, by pid."""
    return {int(name): command_line(int(name)) for name in os.listdir("/proc") if name.isdigit()}


def directory_of(pid: int) -> str:
    """Where it works; empty if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def of_threads(pid: int, name: str) -> dict[str, str]:
    """The file of this name of each of its threads."""
    found = {thread: read(pid, f"task/{thread}/{name}").decode() for thread in os.listdir(f"/proc/{pid}/task")}
    return {thread: text for thread, text in found.items() if text}


def states_of(pid: int) -> set[str]:
    """What its threads do: R if one runs, S if one waits, T if one is suspended."""
    return {text.rpartition(") ")[2][0] for text in of_threads(pid, "stat").values()}


def children_of(pid: int) -> list[int]:
    return [int(each) for text in of_threads(pid, "children").values() for each in text.split()]


def kill_if_alive(pid: int) -> None:
    """Kill it unless it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def of_directory(directory: Path) -> list[int]:
    """The processes that work there, or below."""
    return [pid for pid in command_lines() if Path(directory_of(pid)).is_relative_to(directory)]
