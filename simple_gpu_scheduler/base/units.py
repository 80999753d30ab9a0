"""Durations, sizes and energy: read as people type them (`1h30m`, `10G`), shown alike everywhere (`1 h 30 min`)."""

from .jobs import Patience

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# A bare number below the first is meant in GiB; one from the second on in MiB, as nvidia-smi shows memory.
_SURELY_GIB, _SURELY_MIB = 64, 1024
_LARGE = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
# From when on a number of them is shown, so that a tenth is at most a twentieth of it.
_ALONE = ((2 * 86400, 86400, "d"), (6000, 3600, "h"), (120, 60, "min"))
_AXES = ((3 * 86400, 86400, "d"), (3 * 3600, 3600, "h"), (300, 60, "min"))
_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_MOST_DIGITS = _DECIMALS = 15
_SHORTEST_PATIENCE = 1.0  # GPUs are read once a second


def parse_duration(text: str) -> float:
    """Seconds in `90`, `90s`, `5m`, `1h30m` or `2d`; a ValueError says how to write one."""
    if _is_number(text):
        return float(text)
    seconds, number = 0.0, ""
    for char in text:
        if char in _SECONDS and _is_number(number):
            seconds += float(number) * _SECONDS[char]
            number = ""
        else:
            number += char
    if number or not text:
        raise ValueError(f"'{text}' is not a duration; write 90, 90s, 5m, 1h30m or 2d")
    return seconds


def write_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads as this."""
    if seconds == int(seconds):
        for unit in ("d", "h", "m"):
            if seconds and seconds % _SECONDS[unit] == 0:
                return f"{int(seconds) // _SECONDS[unit]}{unit}"
        return f"{int(seconds)}s"
    shortest = repr(float(seconds))
    if "e" in shortest or len(shortest.partition(".")[2]) > _DECIMALS:
        return f"{seconds:.{_DECIMALS}f}s"
    return f"{shortest}s"


def parse_patience(text: str) -> Patience:
    """A duration, as `30m`, or `30m:end`; a ValueError says how to write one."""
    duration, colon, then = text.partition(":")
    if colon and then != "end":
        raise ValueError(f"'{text}' is not understood; write 30m to be warned, or 30m:end to end the job")
    seconds = parse_duration(duration)
    if 0 < seconds < _SHORTEST_PATIENCE:
        raise ValueError(f"'{text}' is too short: GPUs are read once a second; write 1s or more, or 0 for no limit")
    return Patience(seconds, bool(colon))


def write_patience(patience: Patience) -> str:
    """The shortest text that `parse_patience` reads as this."""
    return f"{write_duration(patience.seconds)}{':end' if patience.ends else ''}"


def parse_size(text: str) -> int:
    """Bytes in `512M` or `10G` (of 1,024); a ValueError says how to write one.

    A few bytes without a unit are no memory that anybody means: 10 would pass every test and promise nothing.
    """
    written = text.upper().removesuffix("B")
    if len(written) < len(text):
        written = written.removesuffix("I")
    unit = written[-1:] if written[-1:] in _BYTES else ""
    written = written.removesuffix(unit)
    if not (text.isascii() and _is_number(written)):
        raise ValueError(f"'{text}' is not a size; write 512M or 10G")
    number = float(written)
    if text == written and 0 < number < _BYTES["M"]:
        units = "G" if number < _SURELY_GIB else "MG" if number < _SURELY_MIB else "M"
        raise ValueError(f"{text} bytes? write {' or '.join(text + unit for unit in units)}")
    return int(number * _BYTES[unit])


def _is_number(text: str) -> bool:
    """Whether it is `12` or `1.5`. (A pattern would take 5 ms of a start.)"""
    whole, point, tenths = text.partition(".")
    return _is_whole(whole) and (not point or _is_whole(tenths))


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def show_duration(seconds: float) -> str:
    """A duration with the two units that matter: `0.3 s`, `42 s`, `5 min 3 s`, `1 h 30 min`, `2 d 4 h`."""
    if seconds < 9.95:  # noqa: PLR2004 - above it, tenths of a second mean nothing
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller_size, smaller in _LARGE:
        if whole >= size:
            rest = whole % size // smaller_size
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def show_in_one_unit(seconds: float, largest: float | None = None) -> str:
    """A duration in a table of many, where `3 min 54 s` is too wide: `0.3 s`, `42 s`, `3.9 min`, `2.4 h`, `12.0 d`.

    The unit is that of the largest of them, if it is given; what is too small for it is `<0.1 h`.
    """
    for least, size, unit in _ALONE:
        if (seconds if largest is None else largest) >= least:
            return f"{_at_least(seconds / size, 1)} {unit}"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"  # noqa: PLR2004 - as above


def axis_unit(seconds: float) -> tuple[int, str]:
    """The unit for an axis of this length, in seconds, and its name."""
    return next(((size, unit) for least, size, unit in _AXES if seconds >= least), (1, "s"))


def show_percent(share: float) -> str:
    """A share in whole per cent, but never all where something is missing, nor nothing where there is some."""
    if 0 < share < 0.005:  # noqa: PLR2004 - which would be rounded
        return "<1 %"
    return ">99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"  # noqa: PLR2004 - as above


def show_size(size: float) -> str:
    """Bytes as GPU tools show them: `11.2 GiB`, `300 MiB`."""
    divisor, digits, unit = _scale(size)
    return f"{size / divisor:.{digits}f} {unit}"


def show_bytes(size: int) -> str:
    """The same for what may be small or very large, as on a disk: `0 B`, `12 KiB`, `300 MiB`, `1.16 TiB`."""
    if size >= 1000 * 2**30:
        return f"{size / 2**40:.2f} TiB"
    if size >= 2**20:
        return show_size(size)
    return f"{-(-size // 2**10)} KiB" if size else "0 B"


def show_share(size: float, total: float) -> str:
    """How much of it is used, both in the unit of the total: `11.2 / 80.0 GiB`."""
    divisor, digits, unit = _scale(total)
    return f"{size / divisor:.{digits}f} / {total / divisor:.{digits}f} {unit}"


def show_energy(joules: float, largest: float | None = None) -> str:
    """Joules in the unit that people pay for, unless there are few: `950 J`, `83 Wh`, `1.24 kWh`.

    The unit is that of the largest of them, if it is given, and so is the number of digits.
    """
    most = (joules if largest is None else largest) / 3600
    if most < 1:
        return f"{joules:.0f} J"
    size, unit = (1000, "kWh") if most >= 1000 else (1, "Wh")  # noqa: PLR2004 - a kilo
    digits = 2 if most < 10 * size else 1 if most < 100 * size else 0
    return f"{_at_least(joules / 3600 / size, digits)} {unit}"


def _at_least(number: float, digits: int) -> str:
    """So many digits after the point; what would be 0 with them is less than the smallest of such numbers."""
    smallest = 10.0**-digits
    return f"<{smallest:.{digits}f}" if 0 < number < smallest / 2 else f"{number:.{digits}f}"


def _scale(size: float) -> tuple[int, int, str]:
    return (2**30, 1, "GiB") if size >= 1000 * 2**20 else (2**20, 0, "MiB")
