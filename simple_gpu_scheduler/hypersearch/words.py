"""The words behind `-p NAME` -> the values of a parameter. Knows nothing of how parameters are combined."""

from simple_gpu_scheduler.errors import UserError

from .generators import generate
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
