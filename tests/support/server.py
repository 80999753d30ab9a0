"""A server of requests with a loop that answers them."""

import socket
from pathlib import Path
from queue import SimpleQueue

from simple_gpu_scheduler.remote.server import Asked, Server, serve


class Loop:
    """A server, and the requests that came, which the test answers when it likes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: SimpleQueue[Asked] = SimpleQueue()
        server = serve(str(path), self.asked.put)
        assert isinstance(server, Server), server
        self.server = server
        self._clients: list[socket.socket] = []

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        self._clients.append(client)
        client.settimeout(120)
        client.connect(str(self.path))
        return client

    def close(self) -> None:
        """Also what a failed test has left."""
        for client in self._clients:
            client.close()
        self.server.close()

    def answer_one(self, answer: dict[str, object]) -> dict[str, object]:
        asked = self.asked.get(timeout=120)
        asked.reply(answer)
        return asked.request
