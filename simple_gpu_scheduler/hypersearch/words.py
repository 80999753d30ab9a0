"""The words behind `-p NAME` -> the values of a parameter. Knows nothing of how parameters are combined."""

from simple_gpu_scheduler.errors import UserError

from .generators import GENERATORS, generate
from .numbers import is_number
from .sweep import Words
from .values import LISTED, Values
from .wording import shown


def parse_values(name: str, written: Words) -> Values:
    """What the words mean. A value that is there twice stays so."""
    words = written.words
    if not words:
        raise UserError(f"the parameter {name} has no values; write -p {name} VALUE...")
    if any("\0" in word for word in words):
        raise UserError(f"a value of {name} has a NUL byte in it, which no command can hold")
    parts = [Values((word,)) if written.are_literal else _parse_word(name, word) for word in words]
    if len(parts) == 1:
        return parts[0]
    for word, part in zip(words, parts, strict=True):
        if part.needs_samples:
            raise UserError(f"{name}: {shown(word)} is drawn at random and stands alone; leave out the other values")
        if len(part.choices) > LISTED:
            raise UserError(f"{name}: {shown(word)} has more than {LISTED:,} values and stands alone")
    return Values(tuple(value for part in parts for value in part.choices))


def _parse_word(name: str, word: str) -> Values:
    try:
        return generate(word) or Values((word,))
    except ValueError as error:
        raise UserError(f"{name}: {shown(word)}: {error} (or -p {name}=VALUE for a value as it stands)") from None


def doubts(name: str, written: Words) -> list[str]:
    """What looks as if something else were meant."""
    if written.are_literal:
        return []
    found = [_doubt(word) for word in written.words]
    if len(written.words) == 1 and "," in written.words[0] and all(map(is_number, written.words[0].split(","))):
        found.append(f"{shown(written.words[0])} is one value; several are separated by blanks")
    return [f"{name}: {doubt}" for doubt in found if doubt]


def _doubt(word: str) -> str:
    first, *numbers = word.split(":")
    close = [word] if word in GENERATORS else []
    if first not in GENERATORS and len(numbers) > 1 and not is_number(first) and all(map(is_number, numbers)):
        from difflib import get_close_matches  # noqa: PLC0415 - few words come so far

        close = get_close_matches(first, GENERATORS, n=1)
    return f"{shown(word)} is a value as it stands; was {GENERATORS[close[0]].example} meant?" if close else ""
