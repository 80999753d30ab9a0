"""Sends a request to an active run, through the socket beside its journal. It knows nothing of requests."""

import errno
import os
import time

# As in the server.
from _socket import AF_UNIX, SHUT_RD, SOCK_STREAM, socket

from simple_gpu_scheduler.base import quickjson
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.journal import files, find
from simple_gpu_scheduler.journal.run_state import read_state

from . import TAKEN

Answer = dict[str, Any]

_PATIENCE = 10.0
_LAST_MOMENT, _PAUSE = 1.0, 0.02


def ask(journal: str, request: Answer) -> Answer:
    """The run's answer. A UserError says why there is none, or why the run refused."""
    run = files.run_of(os.path.realpath(journal))
    if not files.is_alive(journal):
        raise UserError(_say_gone(journal, run))
    try:
        line = _exchange(files.socket_of(journal), quickjson.dumps({**request, "taken": True}).encode() + b"\n")
    except _NoAnswerError:
        raise UserError(
            f"run {run} accepted the request, but did not answer in time; see: {PROGRAM} status {run}"
        ) from None
    except (ConnectionResetError, BrokenPipeError):
        line = b""
    except OSError as error:
        raise UserError(_say_unreachable(journal, run, error)) from None
    if not line.endswith(b"\n"):
        _see_end(journal)
        raise UserError(f"run {run} ended before it answered")
    answer = _parse(line)
    if answer is None:
        raise UserError(
            f"the process listening at {files.socket_of(journal)} is not run {run}: its answer is not a JSON object"
        )
    if "error" in answer:
        raise UserError(f"run {run}: {answer['error']}")
    return answer


def _parse(line: bytes) -> Answer | None:
    try:
        answer = quickjson.loads(line)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _exchange(path: str, request: bytes) -> bytes:
    directory, name = os.path.split(path)
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(_PATIENCE)
        _connect(connection, f"/proc/self/fd/{fd}/{name}")  # the path of a socket has at most 107 bytes
        connection.sendall(request)
        return _read_answer(connection)
    finally:
        connection.close()
        os.close(fd)


class _NoAnswerError(Exception):
    """The request was taken, but too late for its answer."""


def _read_answer(connection: socket) -> bytes:
    """The answer, after the line that says that the request was taken; an older run does not send that line.

    Without that line in time, the request is withdrawn. The kernel decides which comes first: either the line is in our
    queue before we stop receiving, or the run cannot write it, and drops the request.
    """
    received = bytearray()
    while not received.endswith(b"\n") or received == TAKEN:
        try:
            more = connection.recv(65536)
        except TimeoutError:
            connection.shutdown(SHUT_RD)
            if connection.recv(65536):
                raise _NoAnswerError from None
            raise
        if not more:
            break
        received += more
        if received.startswith(TAKEN):
            connection.settimeout(None)  # it is being done, so giving up now would tell nothing
    return bytes(received.removeprefix(TAKEN))


def _connect(connection: socket, path: str) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return connection.connect(path)
        except BlockingIOError:  # many clients connect at the same time
            if time.monotonic() > until:
                raise TimeoutError from None
            time.sleep(_PAUSE)


def _see_end(journal: str) -> None:
    """A killed process loses its connections a moment before its locks; wait, so that the next look sees it dead."""
    until = time.monotonic() + _LAST_MOMENT
    while files.is_alive(journal) and time.monotonic() < until:
        time.sleep(_PAUSE)


def _say_gone(journal: str, run: str) -> str:
    try:
        has_ended = read_state(files.read(journal)).ended is not None
    except ValueError as error:
        return f"{journal} is not the journal of a run: {error}"
    if has_ended:
        return f"run {run} has ended; for its results: {PROGRAM} history {run}"
    return f"run {run} has died; resume it with: {PROGRAM} --resume {run}"


def _say_unreachable(journal: str, run: str, error: OSError) -> str:
    path = files.socket_of(journal)
    if isinstance(error, TimeoutError):
        pid = find.began(journal, newest=True).get("pid", "PID")  # of the scheduler that resumed it last
        return (
            f"run {run} does not respond; if it is suspended (Ctrl-Z), run `fg` in its terminal or `kill -CONT {pid}`, "
            "and try again"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"run {run} belongs to another user"
    if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
        return f"run {run} is active, but has no socket at {path}: it is ending or could not create one; use signals"
    return f"cannot reach run {run} at {path}: {error.strerror}"
