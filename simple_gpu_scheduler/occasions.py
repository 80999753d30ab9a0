"""On which occasions somebody is to be told of a run. Pure; it does not know how."""

from typing import Literal, get_args

Occasion = Literal["end", "fail", "each"]
OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)


def parse_occasions(text: str) -> frozenset[Occasion]:
    """`end,fail` as a set; a ValueError names the word that is none."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in OCCASIONS:
            raise ValueError(f"'{word}' is none of {', '.join(OCCASIONS)}; write one, or several with commas")
    return frozenset(occasion for occasion in OCCASIONS if occasion in words)
