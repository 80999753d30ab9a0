"""What a lease file says about its holder, for people and for schedulers inside a job. Pure.

Only the lock counts; this is a note that anybody could have written. It holds pids and marks of attempts, nothing
that a user typed.
"""

import re
from typing import NamedTuple

from simple_gpu_scheduler.system.users import command_name, owner, user_name

from . import Holder

SIZE = 4096


class Record(NamedTuple):
    """The process that holds a lease, the job's if there is one; and the attempts that it is held for."""

    pid: int = 0
    marks: tuple[bytes, ...] = ()


def encode(record: Record) -> bytes:
    """As a line, which overwrites what was there; whatever remains after it means nothing."""
    marks = b"".join(record.marks)
    head = b"sgs1 %10d " % record.pid
    while len(head) + len(marks) >= SIZE:  # of very many, the newest; the mark of an attempt starts with a slash
        marks = marks[marks.index(b"/", 1) :]
    return head + marks + b"\n"


def decode(data: bytes) -> Record:
    """Parse it; an empty record if no scheduler wrote it."""
    match = re.match(rb"sgs1 +(\d{1,10}) ([\w./-]*)\n", data[:SIZE], re.ASCII)
    if not match:
        return Record()
    return Record(int(match[1]), tuple(b"/" + mark for mark in match[2].split(b"/")[1:]))


def is_one_of_ours(record: Record, tree: bytes) -> bool:
    """Whether the lease is held for an attempt that a process with this `SGS_TREE` is part of."""
    around = set(tree.split(b"/")[1:])
    return any(mark[1:] in around for mark in record.marks)


def show_holder(record: Record) -> Holder:
    """`leased by bob (pid 4242, train.py)`."""
    uid = owner(record.pid) if record.pid else -1
    if uid < 0:
        return Holder("leased by a process that is not visible from here", "unseen")
    name = user_name(uid)
    return Holder(f"leased by {name} (pid {record.pid}, {command_name(record.pid)})", name)
