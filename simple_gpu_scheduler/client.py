"""Asking a living run something, through the socket beside its journal. It knows nothing of what is asked."""

import errno
import json
import os
import socket
from typing import Any

from .errors import UserError
from .journal import files
from .journal.states import read_state

Answer = dict[str, Any]

_PATIENCE = 10.0
SOCKET = ".sock"


def ask(journal: str, request: Answer) -> Answer:
    """The run's answer. A UserError says why there is none, or why the run does not do it."""
    run = os.path.basename(files.stem(journal))
    if not files.is_alive(journal):
        raise UserError(_say_gone(journal, run))
    try:
        line = _exchange(files.stem(journal) + SOCKET, json.dumps(request).encode() + b"\n")
    except OSError as error:
        raise UserError(_say_unreachable(run, files.stem(journal) + SOCKET, error)) from None
    if not line.endswith(b"\n"):
        raise UserError(f"run {run} has ended before it answered")
    answer: Answer = json.loads(line)
    if "error" in answer:
        raise UserError(f"run {run}: {answer['error']}")
    return answer


def _exchange(path: str, request: bytes) -> bytes:
    directory, name = os.path.split(path)
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PATIENCE)
            connection.connect(f"/proc/self/fd/{fd}/{name}")  # the path of a socket has at most 107 bytes
            connection.sendall(request)
            with connection.makefile("rb") as answers:
                return answers.readline()
    finally:
        os.close(fd)


def _say_gone(journal: str, run: str) -> str:
    try:
        has_ended = read_state(files.read(journal)).ended is not None
    except ValueError as error:
        return f"{journal} is no journal of a run: {error}"
    if has_ended:
        return f"run {run} has ended (simple_gpu_scheduler history {run} shows what became of it)"
    return f"run {run} has died; simple_gpu_scheduler --resume {run} goes on with it"


def _say_unreachable(run: str, path: str, error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"run {run} lives and does not answer; is it stopped (Ctrl-Z)? kill -CONT lets it go on"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"run {run} is another user's"
    if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
        return (
            f"run {run} lives, but nothing listens at {path}: it could make no socket, or is ending; signals reach it"
        )
    return f"run {run} cannot be reached at {path}: {error.strerror}"
