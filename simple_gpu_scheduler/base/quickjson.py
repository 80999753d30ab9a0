"""JSON, read and written by the core of `json` alone; all of `json` takes 5 ms to load, with `re`."""

from _json import encode_basestring_ascii, make_encoder, make_scanner

from simple_gpu_scheduler.base.values import Any

_BLANKS = " \t\n\r"


class _Plain:
    """What `json.loads` gives the scanner if it is not told anything else."""

    strict, object_hook, object_pairs_hook = True, None, None
    parse_float, parse_int, parse_constant = float, int, float


_scan = make_scanner(_Plain)  # type: ignore[arg-type] # it has what is asked of a decoder


def loads(text: str | bytes) -> Any:
    """See `json.loads`. Bytes are UTF-8."""
    text = (text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text).strip(_BLANKS)
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):  # the second one where `json` is not loaded, whose error it cannot raise
        end = -1
    if end != len(text):
        raise ValueError("it is not JSON")
    return value


def _refuse(value: object) -> None:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_encode = make_encoder(None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, True)


def dumps(value: object) -> str:
    """See `json.dumps`; without blanks."""
    return "".join(_encode(value, 0))
