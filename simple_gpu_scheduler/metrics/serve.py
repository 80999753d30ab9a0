"""Serves a page over HTTP, on a port or a Unix socket, to a bounded number of clients, each for a bounded time.

It knows HTTP, and not what is on the page.
"""

import errno
import io
import os
import socket
import stat
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler

from simple_gpu_scheduler.base.errors import Broken, UserError
from simple_gpu_scheduler.base.stdlib import SimpleQueue, suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Any, Callable
from simple_gpu_scheduler.system.threads import need_thread, start_thread

from .exposition import TextFormat, choose_format

LOOPBACK = "127.0.0.1"
_PATH = "/metrics"
_MOST_CONNECTIONS = 16
_PATIENCE = 5.0  # seconds for a request, and again for its answer
_LONGEST_REQUEST = 16 * 1024
_BACKLOG = 64
_OF_THE_PORT = (errno.EADDRINUSE, errno.EACCES)
_INDEX = f'<!doctype html><title>simple_gpu_scheduler</title><a href="{_PATH}">metrics</a>\n'.encode()
Page = Callable[[TextFormat], bytes]


class Listener:
    """Answers on one socket, from `start` until it is closed. `where` is its address, for people."""

    def __init__(self, listening: socket.socket, where: str, path: str = "") -> None:
        self.where = where
        self._socket = listening
        self._path = path
        self._bound = os.lstat(path) if path else None
        self._room: SimpleQueue[None] = SimpleQueue()  # one for each connection that may still be made
        for _ in range(_MOST_CONNECTIONS):
            self._room.put(None)
        self._is_closed = False

    def start(self, page: Page, put: Callable[[Broken], object]) -> None:
        """Answer with the page from now on; who came before has waited. `put` gets an error that is a bug."""
        need_thread(lambda: self._accept(page, put))

    def _accept(self, page: Page, put: Callable[[Broken], object]) -> None:
        while not self._is_closed:
            self._room.get()
            try:
                connection, _ = self._socket.accept()
            except OSError:
                self._room.put(None)
                time.sleep(0.1)  # no more descriptors, for now; or it is closed
                continue
            try:
                start_thread(lambda connection=connection: self._answer(connection, page, put))  # type: ignore[misc]
            except RuntimeError:  # there can be no more threads
                connection.close()
                self._room.put(None)

    def _answer(self, connection: socket.socket, page: Page, put: Callable[[Broken], object]) -> None:
        try:
            with connection:
                _Request(connection, page)
        except OSError:  # it has left, or is too slow
            pass
        except Exception as error:  # noqa: BLE001 - a bug, which the main thread raises
            put(Broken(error))
        finally:
            self._room.put(None)

    def close(self) -> None:
        """Answer no more, and remove the Unix socket if it is still this one."""
        self._is_closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept, as close does not
        self._socket.close()
        with suppress(OSError):
            if self._bound and os.path.samestat(self._bound, os.lstat(self._path)):
                os.unlink(self._path)


class _Request(BaseHTTPRequestHandler):
    """One request, and its answer. The connection is not kept."""

    server_version = "simple_gpu_scheduler"
    sys_version = ""
    default_request_version = "HTTP/1.0"

    def __init__(self, connection: socket.socket, page: Page) -> None:
        self._page = page
        super().__init__(connection, ("", 0), None)  # type: ignore[arg-type] # no server of socketserver's

    def setup(self) -> None:
        """Read the request's head whole, in bounded time and memory."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(io.BytesIO(_read_head(self.connection)))
        self.connection.settimeout(_PATIENCE)

    def finish(self) -> None:
        """Nothing is left to write."""
        self.wfile.close()

    def do_GET(self) -> None:
        """Send the page."""
        path = self.path.partition("?")[0]
        if path == _PATH:
            text_format = choose_format(",".join(self.headers.get_all("Accept", ())))
            self._send(HTTPStatus.OK, self._page(text_format), text_format.content_type)
        elif path == "/":
            self._send(HTTPStatus.OK, _INDEX, "text/html; charset=utf-8")
        else:
            self._send(HTTPStatus.NOT_FOUND, f"not found; the metrics are at {_PATH}\n".encode(), "text/plain")

    do_HEAD = do_GET  # noqa: N815 - as above

    def _send(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002 - http.server's
        """Whatever http.server objects to; it says so of methods that it does not find here."""
        status = HTTPStatus(code)
        if status == HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self._send(status, f"{status.phrase}\n".encode(), "text/plain")

    def log_message(self, *_args: Any) -> None:
        """Nothing is logged."""


def _read_head(connection: socket.socket) -> bytes:
    """A request without its body. An OSError says that it does not come in time, or has no end."""
    head = b""
    until = time.monotonic() + _PATIENCE
    while b"\r\n\r\n" not in head and b"\n\n" not in head:
        connection.settimeout(max(0.001, until - time.monotonic()))
        more = connection.recv(_LONGEST_REQUEST)
        if not more:
            break
        head += more
        if len(head) > _LONGEST_REQUEST or time.monotonic() > until:
            raise TimeoutError
    return head


def listen_on_port(port: int, address: str = LOOPBACK) -> Listener:
    """Listen on this port; with 0, on one that is free. A UserError says why that cannot be done."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    shown = f"[{address}]" if ":" in address else address
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        listening.close()
        reason = (isinstance(error, OSError) and error.strerror) or "it is not an address"
        is_of_port = isinstance(error, OSError) and error.errno in _OF_THE_PORT
        hint = "choose another port" if is_of_port else "is it an address of this machine?"
        raise UserError(f"cannot listen on port {port} of {safe(shown)}: {reason}; {hint}") from None
    return Listener(listening, f"http://{shown}:{listening.getsockname()[1]}{_PATH}")


def listen_at_path(path: str) -> Listener:
    """Listen at a Unix socket that only this user may connect to. A UserError says why that cannot be done."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listening.fileno(), 0o600)  # before it has a name: binding uses this mode
        _bind(listening, path)
        listening.listen(_BACKLOG)
    except (OSError, UserError) as error:
        listening.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"cannot create a socket at {safe(path)}: {reason}") from None
    return Listener(listening, path, os.path.abspath(path))


def _bind(listening: socket.socket, path: str) -> None:
    """Bound by the directory's descriptor: the path of a socket has at most 107 bytes."""
    directory, name = os.path.split(path)
    fd = os.open(directory or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        address = os.fsencode(f"/proc/self/fd/{fd}/{name}")
        with suppress(FileNotFoundError):
            state = os.lstat(name, dir_fd=fd)
            if not stat.S_ISSOCK(state.st_mode) or state.st_uid != os.getuid():
                raise UserError("something else has this name, and is not replaced; choose another")
            if _is_answered(address):
                raise UserError("another program listens there; choose another name")
            os.unlink(name, dir_fd=fd)
        listening.bind(address)
    finally:
        os.close(fd)


def _is_answered(address: bytes) -> bool:
    """Whether somebody listens there: even one that is busy does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.setblocking(False)
        try:
            client.connect(address)
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
        return True
