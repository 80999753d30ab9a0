"""Names of users and of the programs they run. It reads /proc and the user database, and judges nothing."""

import os
import pwd

from .leftovers import read_entry


def owner(pid: int) -> int:
    """The uid of a process; -1 when there is none."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:  # it has just ended
        return -1


def user_name(uid: int) -> str:
    """The name of a user; the number if there is no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}" if uid >= 0 else "an unknown user"


def user_id(name: str) -> int:
    """The uid of a user; `me` is the current user. A ValueError says that there is none."""
    if name == "me":
        return os.getuid()
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise ValueError(f"there is no user '{name}'; use a user name or me") from None


def program(pid: int) -> str:
    """The name of the program that a process runs."""
    return read_entry(pid, "comm").decode("utf-8", "replace").strip() or "?"
