"""Parts of sentences: words of the user on one line, and what they may have meant."""

from collections.abc import Collection

_LONGEST = 60
_FEW = 13


def bare(text: str) -> str:
    """The text on one line, and not too long."""
    printable = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_LONGEST])
    return printable if len(text) <= _LONGEST else f"{printable[: _LONGEST - 3]}..."


def shown(text: str) -> str:
    """The same in quotes."""
    return f"'{bare(text)}'"


def meant(word: str, known: Collection[str]) -> str:
    """The known word that it is like, or all of them where they are few, as the end of a sentence."""
    from difflib import get_close_matches  # noqa: PLC0415 - 4 ms of import that only an error needs

    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower, n=1)
    if close:
        return f"; did you mean {by_lower[close[0]]}?"
    return f"; there are {', '.join(sorted(known))}" if 0 < len(known) <= _FEW else ""
