"""The socket beside a run's journal: one JSON request per line is put on the inbox, and its answer written back.

The loop never waits for a client: replying only puts the answer in a queue. It knows nothing of requests.

A request with `"taken": true` is first answered with that, by the loop, right before it acts on it. A client that gives
up closes its end, and then that line cannot be written, and the request is dropped.
"""

import os
import stat
import sys
import time

# Not `socket`, which takes 3 ms to load.
from _socket import AF_UNIX, MSG_NOSIGNAL, SHUT_RDWR, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket

from simple_gpu_scheduler.base import quickjson
from simple_gpu_scheduler.base.stdlib import Lock, SimpleQueue, suppress
from simple_gpu_scheduler.base.values import Any, Callable, NamedTuple
from simple_gpu_scheduler.system.threads import start_thread

from . import TAKEN

Answer = dict[str, Any]

_MOST_CONNECTIONS = 64
_LONGEST_REQUEST = 1024 * 1024
_BACKLOG = 128
# A client that is silent for this long is disconnected.
_PATIENCE = 30.0
_LAST_WORDS = 1.0
_ROOT = 0


class Asked(NamedTuple):
    """A message to the loop: a request, to be answered with `reply`, which does not block.

    First `take` it; if that is False, the client has withdrawn it, and nothing may come of it.
    """

    request: Answer
    reply: Callable[[Answer], None]
    take: Callable[[], bool] = lambda: True


class Server:
    """Accepts connections, each in its own thread, until it is closed."""

    def __init__(self, listener: socket, path: str, put: Callable[[Asked], object]) -> None:
        self._listener = listener
        self._path = path
        self._put = put
        self._room: SimpleQueue[None] = SimpleQueue()  # one for each connection that may still be made
        for _ in range(_MOST_CONNECTIONS):
            self._room.put(None)
        self._lock = Lock()  # guards what is below
        self._asking: dict[SimpleQueue[Answer], Lock] = {}  # a lock is held until the answer was sent
        self._is_closed = False

    def accept(self) -> None:
        """Serve clients."""
        while True:
            self._room.get()
            try:
                fd, _ = self._listener._accept()  # type: ignore[attr-defined] # noqa: SLF001 - of `socket.accept`
            except OSError:
                self._room.put(None)
                if self._is_closed:
                    return
                time.sleep(0.1)  # no more descriptors, for now
                continue
            connection = socket(AF_UNIX, SOCK_STREAM, 0, fd)
            try:
                start_thread(lambda connection=connection: self._serve(connection))  # type: ignore[misc]
            except RuntimeError:  # there can be no more threads
                connection.close()
                self._room.put(None)

    def close(self) -> None:
        """Stop answering, except for answers that are on their way."""
        with suppress(OSError):
            os.unlink(self._path)
        with self._lock:
            self._is_closed = True
            asking = dict(self._asking)
        for answers in asking:
            answers.put({"error": "the run has ended"})
        with suppress(OSError):
            self._listener.shutdown(SHUT_RDWR)  # wakes the thread in accept, as close does not
        end = time.monotonic() + _LAST_WORDS
        for is_sent in asking.values():
            is_sent.acquire(timeout=max(0.0, end - time.monotonic()))
        self._listener.close()

    def _serve(self, connection: socket) -> None:
        try:
            connection.settimeout(_PATIENCE)
            if _user_of(connection) in (os.getuid(), _ROOT):
                self._answer_all(connection)
            else:
                _send(connection, {"error": "this run belongs to another user"})
        except OSError:  # it has left, or is silent
            pass
        finally:
            connection.close()
            self._room.put(None)

    def _answer_all(self, connection: socket) -> None:
        unread = b""
        while not self._is_closed:
            line, newline, rest = unread.partition(b"\n")
            if newline:
                unread = rest
                self._answer(connection, line)
            elif len(unread) > _LONGEST_REQUEST:
                _send(connection, {"error": f"a request may have at most {_LONGEST_REQUEST} bytes"})
                return
            elif more := connection.recv(65536):
                unread += more
            else:
                return

    def _answer(self, connection: socket, line: bytes) -> None:
        request = _parse(line)
        if request is None:
            _send(connection, {"error": "a request must be one JSON object on one line"})
            return
        answers: SimpleQueue[Answer] = SimpleQueue()
        is_sent = Lock()
        is_sent.acquire()
        with self._lock:
            if self._is_closed:
                return
            self._asking[answers] = is_sent
        self._put(Asked(request, answers.put, lambda: not request.get("taken") or _say_taken(connection)))
        try:
            _send(connection, answers.get())
        finally:
            is_sent.release()
            with self._lock:
                del self._asking[answers]


def _user_of(connection: socket) -> int:
    """The second of the three numbers in a `struct ucred`."""
    return int.from_bytes(connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)[4:8], sys.byteorder)


def serve(path: str, put: Callable[[Asked], object]) -> Server | str:
    """Listen on a new socket at `path`, for this user only; or a sentence that says why that failed."""
    listener = socket(AF_UNIX, SOCK_STREAM)
    try:
        os.fchmod(listener.fileno(), 0o600)  # before it has a name: binding uses this mode
        _listen(listener, path)
        server = Server(listener, path, put)
        start_thread(server.accept)
    except (OSError, RuntimeError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return (
            f"cannot create a socket at {path}: {reason}; jobs run, but status, stop and the like cannot reach this run"
        )
    return server


def _listen(listener: socket, path: str) -> None:
    """It gets its name only once it listens, so that no client finds it too early.

    It is bound by the directory's descriptor: the path of a socket has at most 107 bytes.
    """
    directory, name = os.path.split(path)
    fd = os.open(directory or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISSOCK(os.lstat(name, dir_fd=fd).st_mode):
                raise FileExistsError(17, "another file has this name")
        with suppress(FileNotFoundError):
            os.unlink(f"{name}.new", dir_fd=fd)
        listener.bind(os.fsencode(f"/proc/self/fd/{fd}/{name}.new"))
        listener.listen(_BACKLOG)
        os.rename(f"{name}.new", name, src_dir_fd=fd, dst_dir_fd=fd)
    finally:
        os.close(fd)


def _parse(line: bytes) -> Answer | None:
    try:
        request = quickjson.loads(line)
    except (ValueError, RecursionError):
        return None
    return request if isinstance(request, dict) else None


def _say_taken(connection: socket) -> bool:
    """False if the client no longer listens. It is written at once or not at all, since the loop calls this."""
    try:
        at_once = socket(AF_UNIX, SOCK_STREAM, 0, os.dup(connection.fileno()))
    except OSError:
        return False
    try:
        at_once.setblocking(False)
        return at_once.send(TAKEN, MSG_NOSIGNAL) == len(TAKEN)
    except OSError:
        return False
    finally:
        at_once.close()


def _send(connection: socket, answer: Answer) -> None:
    connection.sendall(quickjson.dumps(answer).encode() + b"\n", MSG_NOSIGNAL)
