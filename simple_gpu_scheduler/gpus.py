"""GPUs: how people name them, and the probe that tells which of them others leave free.

It knows nothing of which GPU a job of this run is on.
"""

import re
from collections.abc import Collection, Iterable
from typing import Protocol

_INDEXES = re.compile(r"\d{1,4}(?:-\d{1,4})?", re.ASCII)
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]+", re.ASCII)


class Probe(Protocol):
    """Reads the hardware."""

    def free(self) -> Collection[str]:
        """The ids of the GPUs that nobody but this run uses, now."""


class FixedProbe:
    """Takes the user's word: the listed GPUs are free."""

    def __init__(self, gpus: Collection[str]) -> None:
        self._free = frozenset(gpus)

    def free(self) -> Collection[str]:
        """Always the same."""
        return self._free


def looks_like_gpus(word: str) -> bool:
    """Whether a word names GPUs and nothing else: `0`, `0,1`, `0-3`, a UUID."""
    parts = _parts(word)
    return bool(parts) and all(_INDEXES.fullmatch(part) or _UUID.fullmatch(part) for part in parts)


def parse_gpus(words: Iterable[str]) -> tuple[str, ...]:
    """The ids that the words name, in their order; a ValueError says what is wrong."""
    gpus: dict[str, None] = {}
    for part in (part for word in words for part in _parts(word)):
        for gpu in _expand(part):
            if gpu in gpus:
                raise ValueError(f"GPU {gpu} is named twice")
            gpus[gpu] = None
    return tuple(gpus)


def _parts(word: str) -> list[str]:
    return word.replace(",", " ").split()


def _expand(part: str) -> list[str]:
    if _UUID.fullmatch(part):
        return [part]
    if not _INDEXES.fullmatch(part):
        raise ValueError(f"'{part}' is no GPU; write an index (0), a range (0-3) or a UUID (GPU-...)")
    first, _, last = part.partition("-")
    low, high = int(first), int(last or first)
    if low > high:
        raise ValueError(f"'{part}' counts down; write {high}-{low}")
    return [str(index) for index in range(low, high + 1)]
