"""Messages as they are written."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.keeper import messages
from simple_gpu_scheduler.keeper.messages import (
    AttemptEnded,
    Letter,
    Message,
    Start,
    Stop,
    decode,
    encode,
    key_of,
    name_of,
    use_of,
    written_use,
)
from simple_gpu_scheduler.system.processes import Used

KINDS = get_args(Message)
WITHOUT_NUL = st.binary(max_size=50).map(lambda data: data.replace(b"\0", b"\xff"))
NUMBERS = st.integers(-(2**31), 2**63)


def values_of(default: object) -> st.SearchStrategy[Any]:
    if isinstance(default, tuple):
        return st.lists(WITHOUT_NUL, max_size=5).map(tuple)
    return WITHOUT_NUL if isinstance(default, bytes) else NUMBERS


def all_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(*map(values_of, kind._field_defaults.values())).map(lambda values: kind(*values))


@given(NUMBERS, NUMBERS, st.one_of([all_of(kind) for kind in KINDS]))
def test_what_is_written_is_read_as_it_was_meant(number: int, recorded: int, message: Message) -> None:
    letter = Letter(number, recorded, message)
    assert decode(encode(letter)) == letter


def test_what_an_attempt_used_is_read_as_it_was_written() -> None:
    used = Used(1.25, 4096, 512, 0)
    assert use_of(written_use(used)) == used


def test_a_command_may_have_every_byte_but_nul() -> None:
    start = Start(b"1.1", (b"sh", b"-c", bytes(range(1, 256)), b""), (b"",))
    assert decode(encode(Letter(1, 0, start))).message == start


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_defaults_for_all_its_fields(kind: type[Any]) -> None:
    assert decode(encode(Letter(3, 2, kind()))) == Letter(3, 2, kind())


def test_fields_that_are_not_there_keep_their_defaults() -> None:
    assert decode(b"7\x003\0Stop\x001.1") == Letter(7, 3, Stop(b"1.1"))
    assert decode(b"7\x003\0AttemptEnded") == Letter(7, 3, AttemptEnded())


@given(all_of(AttemptEnded), st.lists(WITHOUT_NUL, max_size=4))
def test_fields_that_are_unknown_are_ignored(ended: AttemptEnded, more: list[bytes]) -> None:
    written = encode(Letter(7, 3, ended))
    assert decode(b"\0".join([written, *more])) == Letter(7, 3, ended)


@given(st.integers(1), st.integers(1))
def test_an_attempt_has_a_name(job: int, attempt: int) -> None:
    assert key_of(name_of((job, attempt))) == (job, attempt)


def test_the_place_of_a_pid_is_nothing_that_a_signature_has() -> None:
    assert messages.PID[0] < ord("\n")
