"""What every command that shows a journal does with one."""

import io
import sys
from pathlib import Path

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.cli.call import call
from simple_gpu_scheduler.cli.commands.history import history_command
from simple_gpu_scheduler.cli.commands.status import status_command
from simple_gpu_scheduler.cli.declarations import Command
from simple_gpu_scheduler.journal.run_state import read_state
from simple_gpu_scheduler.resume.unfinished_jobs import what_is_left


def shown(command: Command, *args: str) -> bytes:
    """What it prints; only a UserError may be raised."""
    out, before = io.BytesIO(), (sys.stdout, sys.stderr)
    sys.stdout = sys.stderr = stream = io.TextIOWrapper(out, encoding="utf-8", errors="strict", write_through=True)
    try:
        call(command, args, "it")
    except UserError:
        pass
    finally:
        sys.stdout, sys.stderr = before
    stream.flush()
    return out.getvalue()


def check_all_commands(data: bytes, place: Path) -> None:
    place.write_bytes(data)
    try:
        state = read_state(data)
    except ValueError:
        state = None
    for args in ((), ("--json",)):
        assert b"\x1b" not in shown(history_command, str(place), *args) + shown(status_command, str(place), *args)
    shown(history_command, str(place), "--commands", "--null")
    if state:
        what_is_left(state, {}, failed_too=True)
