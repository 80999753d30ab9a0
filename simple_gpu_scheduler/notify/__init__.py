"""Notifications when a run or a job has ended."""

from typing import Literal, NamedTuple, get_args

Occasion = Literal["end", "fail", "each"]
OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)


class NotifyOptions(NamedTuple):
    """The section "Notifications" of --help: the command, if any, and when it is run."""

    command: str = ""
    on: frozenset[Occasion] = frozenset()


def parse_occasions(text: str) -> frozenset[Occasion]:
    """`end,fail` as a set; a ValueError names an unknown word."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in OCCASIONS:
            raise ValueError(
                f"'{word}' is not one of {', '.join(OCCASIONS)}; write one, or several separated by commas"
            )
    return frozenset(occasion for occasion in OCCASIONS if occasion in words)
