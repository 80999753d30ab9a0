"""The scheduler's side of a keeper that does not read, as one that is suspended."""

import os
from collections.abc import Iterator

import pytest

from simple_gpu_scheduler.keeper.client import KeeperClient
from simple_gpu_scheduler.keeper.connection import Socket, close_all, pair, receive, send
from simple_gpu_scheduler.keeper.messages import AttemptEnded, Letter, Recorded, Start, Stop, decode, encode

COMMAND = b": " + b"x" * 131_000


@pytest.fixture
def ends() -> Iterator[tuple[KeeperClient, Socket]]:
    ours, theirs = pair()
    client = KeeperClient()
    client._control = ours
    del ours  # or it would stay open
    yield client, theirs
    theirs.close()
    client._control = None


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def fill(client: KeeperClient) -> int:
    """Send until there is no room, and three more, each with a descriptor of its own; how many."""
    count = 0
    while not client.has_unsent:
        count += 1
        assert client.send(Stop(b"%d.1" % count)) == count
    for _ in range(3):
        count += 1
        reading, writing = os.pipe()
        os.write(writing, b"%d" % count)
        client.send(Start(b"%d.1" % count, (b"sh", b"-c", COMMAND)), [reading])
        close_all([reading, writing])
    return count


def test_what_there_was_no_room_for_is_sent_later_in_order_with_its_descriptors(
    ends: tuple[KeeperClient, Socket],
) -> None:
    client, theirs = ends
    before = open_files()
    count = fill(client)
    assert open_files() == before + 3
    for number in range(1, count + 1):
        received = receive(theirs)
        client.send_rest()
        assert received
        assert decode(received.data).number == number
        message = decode(received.data).message
        assert isinstance(message, Stop if number <= count - 3 else Start)
        for fd in received.files or []:
            assert os.read(fd, 100) == b"%d" % number
            os.close(fd)
    assert not client.has_unsent
    assert open_files() == before


def test_a_later_message_does_not_overtake_those_that_wait(ends: tuple[KeeperClient, Socket]) -> None:
    client, theirs = ends
    count = fill(client)
    receive(theirs)  # there is room again
    client.send(Stop(b"last"))
    for _ in range(count):
        client.send_rest()
        last = receive(theirs)
        assert last
        close_all(last.files or [])
    assert decode(last.data).message == Stop(b"last")


def test_descriptors_that_wait_are_closed_when_the_keeper_is_gone(
    ends: tuple[KeeperClient, Socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, theirs = ends
    before = open_files()
    fill(client)
    theirs.close()
    monkeypatch.setattr(os, "waitpid", lambda _pid, _options: (0, 0))
    assert client.receive() is None
    assert not client.known, "it has never worked"
    assert not client.has_unsent
    assert open_files() == before - 2  # both ends
    assert client.fileno() == -1


def test_what_a_keeper_said_is_heard_though_it_was_killed_before_it_had_read_all(
    ends: tuple[KeeperClient, Socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, theirs = ends
    ended = [Letter(number, 0, AttemptEnded(b"%d.1" % number)) for number in (1, 2)]
    for letter in ended:
        send(theirs, encode(letter))
    client.send(Stop(b"3.1"))  # which nobody reads
    theirs.close()
    monkeypatch.setattr(os, "waitpid", lambda _pid, _options: (0, 0))
    assert [client.receive() for _ in range(3)] == [*ended, None]


def test_sending_to_a_keeper_that_is_gone_does_nothing(ends: tuple[KeeperClient, Socket]) -> None:
    client, theirs = ends
    theirs.close()
    client.send(Stop(b"1.1"))
    assert not client.has_unsent


def test_what_is_recorded_is_told_once(ends: tuple[KeeperClient, Socket]) -> None:
    client, theirs = ends
    client.tell_what_is_recorded()
    client.known = 5
    client.tell_what_is_recorded()
    client.tell_what_is_recorded()
    client.send(Stop())
    got = [decode(received.data) for _ in range(2) if (received := receive(theirs))]
    assert got == [Letter(1, 5, Recorded()), Letter(2, 5, Stop())]
