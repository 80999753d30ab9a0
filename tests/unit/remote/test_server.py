"""The socket of a run, with real clients, and a loop that is the test itself."""

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.events import RunBegan, RunEnded
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.records import encode
from simple_gpu_scheduler.remote import client as client_module
from simple_gpu_scheduler.remote.client import ask
from simple_gpu_scheduler.remote.server import Asked, Server, serve
from tests.conftest import until
from tests.support.server import Loop

RUN = "20260102-030405-abcdef"
BEGAN = RunBegan(RUN, 1, "1", "here", "boot", 1, 1, "/", (), ())


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    loop = Loop(tmp_path / "run.sock")
    yield loop
    loop.close()


def read_line(client: socket.socket) -> dict[str, object]:
    with client.makefile("rb") as file:
        return json.loads(file.readline())


def meanwhile(call: Callable[[], object]) -> list[object]:
    """The result of a call that waits for the test; empty until then."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(call())
        except UserError as error:
            results.append(str(error))

    threading.Thread(target=run, daemon=True).start()
    return results


def make_journal(directory: Path, *more: str) -> tuple[str, int]:
    path = directory / f"{RUN}.jsonl"
    fd = files.create(str(path))
    os.write(fd, (encode(BEGAN, 1) + "".join(more)).encode())
    return str(path), fd


def test_a_request_is_put_on_the_inbox_and_its_answer_written_back(loop: Loop) -> None:
    with loop.connect() as client:
        client.sendall(b'{"do": "stat')
        client.sendall(b'us"}\n')
        assert loop.answer_one({"fine": "\udc80"}) == {"do": "status"}
        assert read_line(client) == {"fine": "\udc80"}


def test_one_connection_may_ask_several_times(loop: Loop) -> None:
    with loop.connect() as client:
        client.sendall(b'{"n": 1}\n{"n": 2}\n')
        assert loop.answer_one({"a": 1}) == {"n": 1}
        assert loop.answer_one({"a": 2}) == {"n": 2}
        with client.makefile("rb") as file:
            assert [json.loads(file.readline())["a"] for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("line", [b"no", b"[1]", b"\xff", b"", b"[" * 100_000])
def test_what_is_no_request_is_answered_with_a_sentence_and_the_next_one_counts(loop: Loop, line: bytes) -> None:
    with loop.connect() as client, client.makefile("rb") as file:
        client.sendall(line + b'\n{"n": 1}\n')
        assert json.loads(file.readline()) == {"error": "a request must be one JSON object on one line"}
        loop.answer_one({"a": 1})
        assert json.loads(file.readline()) == {"a": 1}


def test_a_request_has_a_longest_length(loop: Loop) -> None:
    def send(client: socket.socket) -> None:
        with suppress(OSError):  # it is not read to its end
            client.sendall(b"x" * (1 << 20) + b"x" * 100_000)

    with loop.connect() as client:
        meanwhile(lambda: send(client))
        assert read_line(client) == {"error": "a request may have at most 1048576 bytes"}


def test_a_client_that_says_nothing_or_leaves_blocks_no_other(loop: Loop) -> None:
    silent = [loop.connect() for _ in range(20)]
    for client in silent[:10]:
        client.sendall(b'{"half": ')
    asked = loop.connect()
    asked.sendall(b'{"n": 0}\n')
    for client in silent[:5]:
        client.close()
    with loop.connect() as client:
        client.sendall(b'{"n": 1}\n')
        requests = [loop.asked.get(timeout=120) for _ in range(2)]
        [mine] = [each for each in requests if each.request == {"n": 1}]
        mine.reply({"a": 1})
        assert read_line(client) == {"a": 1}
    for client in (*silent, asked):
        client.close()


def test_to_reply_does_not_wait_for_a_client_that_does_not_read(loop: Loop) -> None:
    with loop.connect() as client:
        client.sendall(b'{"n": 1}\n')
        loop.answer_one({"long": "x" * 20_000_000})
        with loop.connect() as other:
            other.sendall(b'{"n": 2}\n')
            loop.answer_one({"a": 2})
            assert read_line(other) == {"a": 2}


def test_beyond_64_clients_others_wait_until_one_leaves(loop: Loop) -> None:
    first = [loop.connect() for _ in range(64)]
    for client in first:
        client.sendall(b"no\n")
        read_line(client)
    with loop.connect() as late:
        late.sendall(b"no\n")
        late.settimeout(0.1)
        with pytest.raises(TimeoutError):
            late.recv(1)
        first[0].close()
        late.settimeout(20)
        assert late.recv(1)
    for client in first:
        client.close()


def test_the_socket_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        loop = Loop(tmp_path / "run.sock")
    finally:
        os.umask(before)
    assert stat.S_IMODE(loop.path.stat().st_mode) == 0o600
    loop.server.close()
    assert not loop.path.exists()


def test_a_socket_that_a_dead_run_left_is_replaced_and_another_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "run.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    loop = Loop(path)
    with loop.connect():
        pass
    loop.server.close()
    path.write_text("mine")
    problem = serve(str(path), print)
    assert isinstance(problem, str)
    assert "another file has this name" in problem
    assert path.read_text() == "mine"


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    problem = serve(str(tmp_path / "no" / "run.sock"), print)
    assert isinstance(problem, str)
    assert problem.startswith(f"cannot create a socket at {tmp_path}/no/run.sock: No such file or directory")


def test_a_client_that_waits_when_the_run_ends_gets_that_answer(loop: Loop) -> None:
    with loop.connect() as client:
        client.sendall(b'{"n": 1}\n')
        loop.asked.get(timeout=120)
        loop.server.close()
        assert read_line(client) == {"error": "the run has ended"}


def test_an_answer_that_was_given_before_the_end_is_still_written(loop: Loop) -> None:
    with loop.connect() as client:
        client.sendall(b'{"n": 1}\n')
        loop.answer_one({"a": 1})
        loop.server.close()
        assert read_line(client) == {"a": 1}


def test_the_end_waits_until_a_long_answer_is_written(loop: Loop) -> None:
    with loop.connect() as client:
        client.sendall(b'{"n": 1}\n')
        loop.answer_one({"long": "x" * 5_000_000})
        results = meanwhile(lambda: read_line(client))
        loop.server.close()
        assert not loop.server._asking
        until(lambda: results)


def test_a_request_that_was_withdrawn_cannot_be_taken(loop: Loop) -> None:
    with loop.connect() as client:
        client.sendall(b'{"n": 1, "taken": true}\n')
        asked = loop.asked.get(timeout=120)
        client.shutdown(socket.SHUT_RD)
        assert not asked.take()
        asked.reply({"error": "the request was withdrawn"})
        assert client.recv(1) == b""


def test_a_request_that_was_taken_says_so_even_to_a_client_that_withdraws_it_then(loop: Loop) -> None:
    with loop.connect() as client:
        client.sendall(b'{"n": 1, "taken": true}\n')
        asked = loop.asked.get(timeout=120)
        assert asked.take()
        client.shutdown(socket.SHUT_RD)
        assert client.recv(100) == b'{"taken":true}\n'
        asked.reply({})


def test_a_client_that_only_sends_no_more_has_not_withdrawn_its_request(loop: Loop) -> None:
    with loop.connect() as client:
        client.sendall(b'{"n": 1}\n')
        client.shutdown(socket.SHUT_WR)
        asked = loop.asked.get(timeout=120)
        assert asked.take()
        asked.reply({"a": 1})
        assert read_line(client) == {"a": 1}


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_client_that_gives_up_knows_whether_its_request_is_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    journal, fd = make_journal(tmp_path)
    files.lock(fd, files.SCHEDULER)
    loop = Loop(tmp_path / f"{RUN}.sock")
    monkeypatch.setattr(client_module, "_PATIENCE", 0.1)
    results = meanwhile(lambda: ask(journal, {"do": "x"}))
    asked = loop.asked.get(timeout=120)
    if is_taken:
        asked.take()
        time.sleep(0.5)  # longer than it would wait for an answer
        assert not results
        asked.reply({"done": "y"})
        until(lambda: results == [{"done": "y"}])
    else:
        until(lambda: results)
        assert "does not respond" in str(results[0])
        assert not asked.take()
        asked.reply({})
    loop.close()
    os.close(fd)


def test_an_older_run_answers_without_saying_that_it_has_taken_the_request(tmp_path: Path) -> None:
    journal, fd = make_journal(tmp_path)
    files.lock(fd, files.SCHEDULER)
    loop = Loop(tmp_path / f"{RUN}.sock")
    results = meanwhile(lambda: ask(journal, {"do": "x"}))
    loop.answer_one({"a": 1})
    until(lambda: results == [{"a": 1}])
    loop.close()
    os.close(fd)


def test_a_path_longer_than_a_sockets_is_no_problem(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 200)
    directory.mkdir()
    journal, fd = make_journal(directory)
    files.lock(fd, files.SCHEDULER)
    asked: SimpleQueue[Asked] = SimpleQueue()
    server = serve(f"{directory}/{RUN}.sock", asked.put)
    assert isinstance(server, Server)
    results = meanwhile(lambda: ask(journal, {"do": "x"}))
    asked.get(timeout=120).reply({"a": 1})
    until(lambda: results == [{"a": 1}])
    server.close()
    os.close(fd)


def test_asking_a_run_that_died_or_ended_says_so(tmp_path: Path) -> None:
    journal, fd = make_journal(tmp_path)
    with pytest.raises(UserError, match=f"run {RUN} has died; resume it with: simple_gpu_scheduler --resume {RUN}"):
        ask(journal, {"do": "status"})
    os.write(fd, encode(RunEnded(1, 0, 0, 0, 1, all_read=True), 2).encode())
    with pytest.raises(UserError, match=f"run {RUN} has ended"):
        ask(journal, {"do": "status"})
    os.close(fd)


def test_an_active_run_without_a_socket_is_shown_as_active(tmp_path: Path) -> None:
    journal, fd = make_journal(tmp_path)
    files.lock(fd, files.SCHEDULER)
    with pytest.raises(UserError, match=f"run {RUN} is active, but has no socket at .*; use signals"):
        ask(journal, {"do": "status"})
    os.close(fd)


def test_an_error_is_raised_as_a_sentence_with_the_runs_name(tmp_path: Path) -> None:
    journal, fd = make_journal(tmp_path)
    files.lock(fd, files.SCHEDULER)
    loop = Loop(tmp_path / f"{RUN}.sock")
    results = meanwhile(lambda: ask(journal, {"do": "x"}))
    loop.answer_one({"error": "no"})
    until(lambda: results == [f"run {RUN}: no"])
    loop.server.close()
    os.close(fd)
