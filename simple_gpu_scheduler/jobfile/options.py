"""The options of one line, after `#:`, such as `gpus=2 timeout=4h name=big`.

It knows the keys and the form of their values, not where in a line they are, nor what they do.
"""

from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.units import parse_duration, parse_patience, parse_size
from simple_gpu_scheduler.base.values import Any, Callable, Mapping

AUTO = "auto"  # the value of `mem` that is found out
NOT_IN_NAMES = r"\s,'\"`\\\x00-\x1f\x7f"
_NOT_IN_NAMES = frozenset(" ,'\"`\\")
_MOST_DIGITS = 9


def _count(text: str) -> int:
    if not _is_whole(text):
        raise ValueError(f"'{text}' is not a whole number (0 or more)")
    return int(text)


def parse_mem(text: str) -> int | str:
    """Bytes, or `AUTO`; a ValueError says how to write it."""
    if text.lower() == AUTO:
        return AUTO
    try:
        return parse_size(text)
    except ValueError as error:
        raise ValueError(f"{error}, or auto") from None


def _priority(text: str) -> int:
    if not _is_whole(text[1:] if text[0] in "+-" else text):
        raise ValueError(f"'{text}' is not a whole number (higher starts earlier)")
    return int(text)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def _name(text: str) -> str:
    if not text or not text.isprintable() or not _NOT_IN_NAMES.isdisjoint(text):
        raise ValueError(f"'{text}' is not a valid name; leave out quotes, commas and backslashes")
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(_name(part) for part in text.split(","))


KEYS: Mapping[str, Callable[[str], object]] = {
    "gpus": _count,
    "mem": parse_mem,
    "timeout": parse_duration,
    "stall": parse_patience,
    "idle": parse_patience,
    "time": parse_duration,
    "retries": _count,
    "priority": _priority,
    "label": _name,
    "name": _name,
    "after": _names,
}
_SEPARATOR = r"[,;]($|\w+=)"
_OF_ONE_JOB = ("name", "after")


def parse_options(text: bytes, *, default: bool = False) -> dict[str, Any]:
    """Parse the text after `#:`; a ValueError names the wrong option. `default`: they are for the lines below."""
    try:
        words = text.decode().split()
    except UnicodeDecodeError:
        raise ValueError("options must be UTF-8") from None
    options: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in KEYS:
            raise ValueError(_unknown(key))
        if not equals or not value:
            raise ValueError(f"'{word}' has no value; write {key}=VALUE")
        if key in options:
            raise ValueError(f"'{key}' is given twice")
        if default and key in _OF_ONE_JOB:
            raise ValueError(f"'{key}' is for a single job; put it after the job's command")
        options[key] = _value(key, value)
    return options


def _value(key: str, text: str) -> object:
    try:
        return KEYS[key](text)
    except ValueError as error:
        hint = "; separate options with spaces" if re.search(_SEPARATOR, text) else ""
        raise ValueError(f"{key}: {error}{hint}") from None


def _unknown(key: str) -> str:
    if key.startswith("#"):
        return "a comment cannot follow options; put it on its own line"
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    close = get_close_matches(key, KEYS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"the options are {', '.join(KEYS)}"
    return f"unknown option '{key}'; {hint}"
