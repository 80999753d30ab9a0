"""Who holds a lease, as a person would say it, from what its record claims and /proc confirms."""

from simple_gpu_scheduler.people import command_name, owner, user_name

from . import Holder
from .record import Record


def show_holder(record: Record) -> Holder:
    """`leased by bob (pid 4242, train.py)`."""
    uid = owner(record.pid) if record.pid else -1
    if uid < 0:
        return Holder("leased by a process that cannot be seen from here", "unseen")
    name = user_name(uid)
    return Holder(f"leased by {name} (pid {record.pid}, {command_name(record.pid)})", name)
