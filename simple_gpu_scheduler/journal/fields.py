"""The type of each field of a record, so that nothing else gets into the state of a run. Pure.

It knows neither what fields mean nor which may be missing. A long journal has millions of fields, so those of a plain
type are checked without a call.
"""

from simple_gpu_scheduler.base.jobs import Kind
from simple_gpu_scheduler.base.units import parse_patience
from simple_gpu_scheduler.base.values import Any, Callable, Mapping, get_args

_MOST = 10**40  # more than any option can say
_DEEPEST = 8  # tables within tables of what was measured: more than there are
_FAR = 2**36  # seconds: from the epoch to the year 4147; beyond, calendars fail

Check = Callable[[Any], bool]


def is_sound(record: Mapping[str, Any]) -> bool:
    """Whether each known field has the right type; other fields are ignored."""
    fields = FIELDS.get(record["event"], _COMMON)
    for name, value in record.items():
        kind = fields.get(name)
        if kind is None:
            continue
        if kind is str:
            if type(value) is not str or not (value.isascii() or is_text(value)):
                return False
        elif kind is int:
            if type(value) is not int or not -_MOST < value < _MOST:
                return False
        elif kind is float:
            if type(value) not in (float, int) or not -_FAR < value < _FAR:  # NaN neither
                return False
        elif not kind(value):
            return False
    return True


def is_text(value: object) -> bool:
    """A byte that is not UTF-8 is a lone surrogate, but some surrogates are no byte."""
    try:
        return isinstance(value, str) and value.encode("utf-8", "surrogateescape") is not None
    except UnicodeEncodeError:
        return False


def _is_length(value: object) -> bool:
    return type(value) in (float, int) and 0 <= value < _MOST  # type: ignore[operator] # mypy cannot see why


def _is_patience(value: object) -> bool:
    try:
        return isinstance(value, str) and parse_patience(value) is not None
    except ValueError:
        return False


def _are_defaults(value: object) -> bool:
    return isinstance(value, dict) and all(_is_patience(value[name]) for name in _PATIENCES if name in value)


def _is_yes_or_no(value: object) -> bool:
    return type(value) is bool


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def _are_numbers(value: object) -> bool:
    return isinstance(value, list) and all(type(each) is int for each in value)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == 16 and all(each in "0123456789abcdef" for each in value)  # noqa: PLR2004


def _is_measured(value: object, depth: int = _DEEPEST) -> bool:
    """Figures by name, of any depth that the format has, and text."""
    if isinstance(value, dict):
        return depth > 0 and all(is_text(name) and _is_measured(each, depth - 1) for name, each in value.items())
    return is_text(value) or type(value) is bool or (type(value) in (float, int) and -_MOST < value < _MOST)  # type: ignore[operator] # mypy cannot see why


def _are_measured(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict) and is_text(each.get("gpu")) and _is_measured({**each, "of_gpu": ""}) for each in value
    )


def _are_running(value: object) -> bool:
    return isinstance(value, list) and all(_are_numbers(each) and len(each) == 3 for each in value)  # noqa: PLR2004


def _are_tables_with(*needed: str) -> Check:
    def check(value: object) -> bool:
        return isinstance(value, list) and all(
            isinstance(each, dict) and all(map(is_text, each.values())) and each.keys() >= {*needed} for each in value
        )

    return check


def _is_one_of(*words: str) -> Check:
    return lambda value: isinstance(value, str) and value in words


_COMMON: Mapping[str, Check | type] = {"at": float, "job": int, "attempt": int}
_TEXTS = dict.fromkeys(("source", "name", "command", "problem", "reason", "why", "log", "sentence", "label"), str)
_COUNTS = dict.fromkeys(
    ("succeeded", "failed", "timed_out", "not_started", "code", "left", "cancelled", "interrupted", "stalled"), int
)
_OPTIONS: Mapping[str, Check | type] = {
    **dict.fromkeys(("gpus", "mem", "retries", "priority"), int),
    **dict.fromkeys(("timeout", "time"), _is_length),
    "mem_auto": _is_yes_or_no,
}
_PATIENCES = dict.fromkeys(("stall", "idle"), _is_patience)
FIELDS: Mapping[str, Mapping[str, Check | type]] = {
    "run began": {
        **_COMMON,
        **dict.fromkeys(("run", "program", "host", "boot", "directory"), str),
        **dict.fromkeys(("version", "pid", "born"), int),
        "argv": _are_texts,
        "inputs": _are_tables_with("kind", "path"),
        "is_resumed": _is_yes_or_no,
    },
    "job read": {
        **_COMMON,
        **_TEXTS,
        **_OPTIONS,
        **_PATIENCES,
        "line": int,
        "digest": _is_digest,
        "after": _are_numbers,
    },
    "read up to": {
        **_TEXTS,
        **dict.fromkeys(("device", "inode", "offset", "crc", "line", "unfinished"), int),
        "at": float,
        "defaults": _are_defaults,
        "holds": _are_numbers,
    },
    "input ended": {"at": float, "path": str},
    "line refused": {**_COMMON, **_TEXTS, "line": int, "digest": _is_digest},
    "job started": {
        **_COMMON,
        "gpus": _are_texts,
        "slots": _are_numbers,
        "log": str,
        "mem": int,
        "alone": _is_yes_or_no,
    },
    "job began": {**_COMMON, "where": str},
    "job ended": {
        **_COMMON,
        "outcome": _is_one_of(*get_args(Kind)),
        "code": int,
        "started": float,
        "runtime": float,
        "final": _is_yes_or_no,
        "reason": str,
        **dict.fromkeys(("interrupted", "cancelled"), _is_yes_or_no),
    },
    "stall seen": {**_COMMON, "reason": str, "ends": _is_yes_or_no},
    "attempt measured": {**_COMMON, "gpus": _are_measured, "cpu": _is_measured},
    "job exited": {**_COMMON, "status": int},
    "keeper alone": {"at": float, "running": _are_running},
    "job dropped": {**_COMMON, "reason": str, "cancelled": _is_yes_or_no},
    "waited": {"at": float, "waits": _are_tables_with("gpu", "for")},
    "noticed": {"at": float, "sentence": str, "is_failure": _is_yes_or_no},
    "run ended": {**_COUNTS, "at": float, "elapsed": float, "all_read": _is_yes_or_no},
}
