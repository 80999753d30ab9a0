"""Values as the shell needs them where they stand: bare, in quotes, behind `#:`, or where nothing helps.

It knows what a place means to the shell, and not how a pattern is written. A ValueError says why a value cannot stand
there.
"""

import re
from collections.abc import Callable, Mapping
from shlex import quote

from simple_gpu_scheduler.comments import CommentScanner

_SPECIAL_IN_STRING = re.compile(r'([\\"$`])')
_OPTIONS = b"#:"

OPTIONS, NOTE = "#:", "#"


def place_behind(text: str) -> str:
    """What the shell has open at the end of this text: nothing, a quote, a comment (`#`), options (`#:`), `${`.

    Where a here-document may be open, `<<`: how its text is read is not known here.
    """
    data = text.encode(errors="surrogateescape")
    scanner = CommentScanner().feed(data)
    if scanner.ends_in_comment:
        last = scanner.comments[-1] if scanner.comments else len(data)
        return OPTIONS if data.startswith(_OPTIONS, last) else NOTE
    if b"<<" in data and b"\n" in data:
        return "<<"
    return scanner.open[-1].decode() if scanner.open else ""


def _in_single_quotes(value: str) -> str:
    return value.replace("'", "'\\''")


def _in_string(value: str) -> str:
    return _SPECIAL_IN_STRING.sub(r"\\\1", value)


def _in_options(value: str) -> str:
    if not value or not value.isprintable() or any(char.isspace() for char in value):
        raise ValueError("behind #: a value is one word without blanks")
    return value


def _in_note(value: str) -> str:
    return value


def _without_quotes(value: str) -> str:
    if quote(value) != value:
        raise ValueError("there the shell takes no quotes; put the placeholder into $( ) or outside")
    return value


_QUOTES: Mapping[str, Callable[[str], str]] = {
    "": quote,
    "(": quote,
    "$(": quote,
    "'": _in_single_quotes,
    '"': _in_string,
    OPTIONS: _in_options,
    NOTE: _in_note,
}


def quoted(value: str, place: str) -> str:
    """The value, so that the program gets just this, whatever is in it."""
    return _QUOTES.get(place, _without_quotes)(value)
