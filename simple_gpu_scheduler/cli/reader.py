"""Reads a plain command line, as click would, without click.

It says nothing about a mistake, nor about anything unusual (`--help`, `-qv`, a value that starts with a dash): then the
answer is None, and click reads the line again. So all that must hold is that click reads the same.
"""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Any, Mapping, Sequence

from .declarations import Argument, Command, CommandLine, Option


def read(
    command: Command, argv: Sequence[str], environment: Mapping[str, str], defaults: Mapping[str, Sequence[Any]]
) -> CommandLine | None:
    """The values of all options and of the argument, or None."""
    options = command.options
    try:
        given, words = _sorted(command, options, argv)
        values = {}
        for option in options:
            said = environment.get(option.envvar)
            if option.is_flag and said and said != "1":  # click knows the words for yes and no
                return None
            unless_typed = [said] if said else defaults.get(option.key, ())
            values[option.key] = value_of(option, given.get(option.key) or unless_typed)
        if command.argument:
            values[command.argument.key] = _value_of_words(command.argument, words)
        elif words:
            return None
    except (ValueError, UserError):
        return None
    return CommandLine(values, frozenset(given), tuple(argv))


def _sorted(
    command: Command, options: Sequence[Option], argv: Sequence[str]
) -> tuple[Mapping[str, Sequence[Any]], Sequence[str]]:
    """What was typed for each option, once for each time that it was given; and the words of no option."""
    by_name = {name: option for option in options for name in option.names}
    given: dict[str, list[Any]] = {}
    words: list[str] = []
    rest = [*reversed(argv)]
    while rest:
        word = rest.pop()
        if word == "--":
            return given, [*words, *reversed(rest)]
        if not word.startswith("-"):
            words.append(word)
            if command.is_for_program:
                return given, [*words, *reversed(rest)]
        elif word == "-" and not command.is_for_program:
            words.append(word)
        else:
            name, equals, value = word.partition("=")
            if name not in by_name or (equals and not name.startswith("--")):
                raise ValueError(word)
            option = by_name[name]
            given.setdefault(option.key, []).append(_taken(option, value if equals else None, rest))
    return given, words


def _taken(option: Option, attached: str | None, rest: list[str]) -> Any:
    """What it was given this time; its words are taken off the end of the rest."""
    if option.is_flag:
        if attached is not None:
            raise ValueError(attached)
        return True
    if option.takes and option.multiple:
        return _several(option.takes, attached, rest)
    if attached is not None:
        if option.nargs > 1:
            raise ValueError(attached)
        return attached
    if option.takes:
        return rest.pop() if rest and option.takes(rest[-1]) else ""
    taken = tuple([_plain(rest) for _ in range(option.nargs)])
    return taken if option.nargs > 1 else taken[0]


def _several(takes: Any, attached: str | None, rest: list[str]) -> tuple[str, ...]:
    values = [] if attached is None else [attached]
    while rest and takes(rest[-1]):
        values.append(rest.pop())
    if not values:
        raise ValueError("no value")
    return tuple(values)


def _plain(rest: list[str]) -> str:
    """The next word, if nobody could take it for an option."""
    if not rest or (rest[-1].startswith("-") and rest[-1] != "-"):
        raise ValueError("no value")
    return rest.pop()


def value_of(option: Option, given: Sequence[Any]) -> Any:
    """The value of an option that was given these, one each time; a ValueError or UserError says what is wrong."""
    value: Any
    if option.is_flag:
        value = bool(given)
    elif option.multiple:
        value = tuple([_parsed(option, each) for each in given])
    else:
        value = _parsed(option, given[-1] if given else option.default)
    return option.then(value) if option.then else value


def _parsed(option: Option, typed: Any) -> Any:
    """Defaults that are no text are values already, and so are words that the option took by their looks."""
    if option.kind is None or typed is None:
        return typed
    if isinstance(typed, tuple):
        return tuple([option.kind.parse(word) for word in typed])
    return option.kind.parse(typed) if isinstance(typed, str) else typed


def _value_of_words(argument: Argument, words: Sequence[str]) -> Any:
    if argument.is_required and not words:
        raise ValueError("no word")
    if argument.is_many:
        return tuple(words)
    if len(words) > 1:
        raise ValueError(words[1])
    return words[0] if words else None
