"""Printing on stdout what may hold any character, and moments as people read them."""

import sys
import time


def print_text(text: str) -> None:
    """Print; what the locale cannot say is escaped."""
    print_bytes(text.encode(sys.stdout.encoding, "backslashreplace") + b"\n")


def print_bytes(data: bytes) -> None:
    """Print as it is."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def show_moment(at: float) -> str:
    """The time by the clock on the wall."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
