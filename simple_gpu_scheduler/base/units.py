"""Parses and shows durations and sizes as people write them."""

import re

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# Patterns stay text here: compiling them takes longer than most runs use them.
_NUMBER = r"\d{1,15}(?:\.\d{1,15})?"
_DURATION = rf"(?:{_NUMBER}[smhd])+"
_PART = rf"({_NUMBER})([smhd])"
_SIZE = rf"({_NUMBER})([KMGT]?)(?:i?B)?"


def parse_duration(text: str) -> float:
    """Seconds in `90`, `90s`, `5m`, `1h30m` or `2d`; a ValueError says how to write one."""
    if re.fullmatch(_NUMBER, text, re.ASCII):
        return float(text)
    if not re.fullmatch(_DURATION, text, re.ASCII):
        raise ValueError(f"'{text}' is not a duration; write 90, 90s, 5m, 1h30m or 2d")
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text, re.ASCII))


def parse_size(text: str) -> int:
    """Bytes in `512M` or `10G` (of 1,024); a ValueError says how to write one."""
    match = re.fullmatch(_SIZE, text, re.IGNORECASE | re.ASCII)
    if not match:
        raise ValueError(f"'{text}' is not a size; write 512M or 10G")
    return int(float(match[1]) * _BYTES[match[2].upper()])


def show_duration(seconds: float) -> str:
    """A duration with the two units that matter: `0.3 s`, `42 s`, `5 min 3 s`, `1 h 30 min`, `2 d 4 h`."""
    if seconds < 9.95:  # noqa: PLR2004 - above it, tenths of a second mean nothing
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller_size, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller_size
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def show_size(size: float) -> str:
    """Bytes as GPU tools show them: `11.2 GiB`, `300 MiB`."""
    if size >= 1000 * 2**20:
        return f"{size / 2**30:.1f} GiB"
    return f"{size / 2**20:.0f} MiB"
