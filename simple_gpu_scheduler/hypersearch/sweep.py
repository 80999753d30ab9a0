"""A sweep as somebody wrote it, on the command line or in a file. Nothing in it is checked yet."""

from collections.abc import Mapping
from typing import NamedTuple

SHUFFLED, IN_ORDER = "shuffled_grid", "grid"


class Words(NamedTuple):
    """What was written behind a parameter's name. Literal words are values as they stand, whatever is in them."""

    words: tuple[str, ...]
    are_literal: bool = False


class Rows(NamedTuple):
    """Configurations that are listed whole, as in a CSV file. Not all of the columns need to be used."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class Sweep(NamedTuple):
    """Its commands are those of all combinations; parameters of one zip go together, and so do the columns of rows."""

    pattern: str = ""
    parameters: Mapping[str, Words] = {}
    rows: Rows = Rows()
    zips: tuple[tuple[str, ...], ...] = ()
    where: tuple[str, ...] = ()
    when: Mapping[str, str] = {}
    repeat: int | None = None
    name: str | None = None
    sampling_mode: str = ""  # SHUFFLED where nothing else is said
    sampler: str = ""
    samples: int | None = None
    seed: int | None = None
