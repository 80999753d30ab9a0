"""The words of `simple_hypersearch` -> a sweep, or an error message."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.hypersearch.definitions import parse_zip
from simple_gpu_scheduler.hypersearch.sweep import Sweep, WrittenValues, shown

EXAMPLE = 'simple_hypersearch "python3 train.py --lr {lr}" -p lr 0.1 0.01'
_NEGATIVE_NUMBER = re.compile(r"-\.?\d")


def is_value(word: str) -> bool:
    """Whether a word after `-p` is a value of it, and not an option."""
    if word == "-0":  # --null
        return False
    return not word.startswith("-") or word == "-" or " " in word or bool(_NEGATIVE_NUMBER.match(word))


def typed_sweep(
    pattern: tuple[str, ...],
    parameter: tuple[tuple[str, ...], ...],
    together: tuple[str, ...],
    when: tuple[tuple[str, str], ...],
    **said: Any,
) -> Sweep:
    """The sweep that was typed; what was not given is left empty."""
    conditions, parameters = _conditions(when), _parameters(parameter)
    if len(pattern) > 1:
        raise UserError(_beside(pattern[0], pattern[1], parameters, together))
    given = {field: value for field, value in said.items() if value is not None}
    zips = tuple(parse_zip(names) for names in together)
    return Sweep("".join(pattern), parameters, zips=zips, when=conditions, **given)


def _beside(pattern: str, word: str, parameters: Collection[str], together: Sequence[str]) -> str:
    """The error for a second word that belongs to no option."""
    wrong = f"unexpected {shown(word)} next to the pattern {shown(pattern)}"
    name, equals, value = word.partition("=")
    if equals and name.isidentifier():
        return f"{wrong}; write a parameter as -p {name} {value}"
    for word_of_two in (word, pattern):
        if together and word_of_two in parameters:
            return f"{wrong}; separate the names of --zip with commas: --zip {together[-1]},{word_of_two}"
    return f"{wrong}; quote the whole pattern, and any condition. For example: {EXAMPLE}"


def _parameter(words: tuple[str, ...]) -> tuple[str, WrittenValues]:
    """`lr 0.1 0.01`, or `lr=VALUE`, whose value may be anything."""
    name, equals, _ = words[0].partition("=")
    if not equals:
        return name, WrittenValues(words[1:])
    for word in words:
        if not word.startswith(f"{name}="):
            raise UserError(f"after -p {name}=VALUE every value must be literal too: write {name}={word}")
    return name, WrittenValues(tuple(word[len(name) + 1 :] for word in words), are_literal=True)


def _parameters(given: Iterable[tuple[str, ...]]) -> dict[str, WrittenValues]:
    found: dict[str, WrittenValues] = {}
    for name, words in map(_parameter, given):
        if name in found:
            again = f"{name}=VALUE {name}=VALUE" if words.are_literal else name
            raise UserError(f"the parameter {name} is given twice; write all its values after one -p {again}")
        found[name] = words
    return found


def _conditions(given: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, condition in given:
        if condition.startswith("--"):
            raise UserError(f"--when needs NAME CONDITION, as in --when m 'opt == \"sgd\"', but got only '{name}'")
        if name in found:
            raise UserError(f"--when {name} is given twice; write one condition, joined with and or or")
        found[name] = condition
    return found


def without_pattern(typed: Sweep) -> str:
    """The error if there is no pattern."""
    for name, words in typed.parameters.items():
        for word in words.words:
            if "{" in word:
                return (
                    f"there is no PATTERN; {shown(word)} was read as a value of {name}: "
                    "if it is the pattern, write it before the first -p"
                )
    return f"there is no PATTERN. For example: {EXAMPLE}"
