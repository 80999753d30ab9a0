"""A sweep as written on the command line or in a file. Nothing in it is checked yet."""

from simple_gpu_scheduler.base.values import Collection, Mapping, NamedTuple

SHUFFLED, IN_ORDER = "shuffled_grid", "grid"


class WrittenValues(NamedTuple):
    """The words after a parameter's name. Literal words are taken as values without interpretation."""

    words: tuple[str, ...]
    are_literal: bool = False


class Rows(NamedTuple):
    """Complete configurations, as in a CSV file. Not every column must be used."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class Sweep(NamedTuple):
    """Its commands are all combinations; parameters of one zip vary together, and so do the columns of rows."""

    pattern: str = ""
    parameters: Mapping[str, WrittenValues] = {}
    rows: Rows = Rows()
    zips: tuple[tuple[str, ...], ...] = ()
    where: tuple[str, ...] = ()
    when: Mapping[str, str] = {}
    repeat: int | None = None
    name: str | None = None
    sampling_mode: str = ""  # SHUFFLED by default
    sampler: str = ""
    samples: int | None = None
    seed: int | None = None


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
    """The most similar known word, or all of them if they are few, as the end of a sentence."""
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower, n=1)
    if close:
        return f"; did you mean {by_lower[close[0]]}?"
    return f"; choose from {', '.join(sorted(known))}" if 0 < len(known) <= _FEW else ""
