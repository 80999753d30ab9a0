"""Names for jobs, such as `0.1-32`, each given once. What cannot be part of a name becomes `_`."""

import re

from simple_gpu_scheduler.options import NOT_IN_NAMES

_NOT_IN_NAMES = re.compile(f"[{NOT_IN_NAMES}]")


class Names:
    """The names that were given; they are remembered."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._next: dict[str, int] = {}

    def give(self, wish: str) -> str:
        """This name, or where it was given before, this one with a number: `0.1-32-2`."""
        wish = "".join(char if char.isprintable() else "_" for char in _NOT_IN_NAMES.sub("_", wish)) or "_"
        name = wish
        while name in self._given:
            self._next[wish] = self._next.get(wish, 1) + 1
            name = f"{wish}-{self._next[wish]}"
        self._given.add(name)
        return name
