"""The processes of this machine, as /proc shows them."""

import os


def command_line(pid: int) -> bytes:
    """Its words, each ended by NUL; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def command_lines() -> dict[int, bytes]:
    """Those of all processes, by pid."""
    return {int(name): command_line(int(name)) for name in os.listdir("/proc") if name.isdigit()}
