"""The commands of a sweep -> its parameters: the names whose values vary, and the values in each command. Pure.

It splits a command into words as a shell does. `--name VALUE`, `--name=VALUE`, `-n VALUE` and `name=VALUE` count as
parameters, the other words as the action; it does not know the grammar of any program. Commands with the same action
form a sweep.

Not each parameter is an axis. `--output runs/17.json` has a value of its own in every job, so it names the job and
says nothing about the others.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.scheduling.templates import PLACEHOLDER, template_of

PRESENT = "yes"  # the value of an option that has none
_LONGEST = 4000
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*'|["'\\])+""", re.DOTALL)
_ASSIGNED = re.compile(r"([+~]*[A-Za-z_][\w./@:-]*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"--?[A-Za-z][^\s=]*")
_QUOTES = re.compile(r"""\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'""", re.DOTALL)
_ESCAPED = re.compile(r"""\\(["\\$`])""")
_REDIRECTION = re.compile(r"[0-9]*(?:>[>&|]?|<[<&>]?)|&>>?")
_BY_SHELL = frozenset("<>|&;()")
_PATH = re.compile(r"/|\.[A-Za-z]\w*$")
# What varies between two jobs is distinct in both.
_FEWEST, _FEW = 3, 5


class _Parts(NamedTuple):
    """A command: its action, its parameters in order, and the words without a name."""

    named: Mapping[str, str]
    alone: Sequence[str]


class Parameters(NamedTuple):
    """The names in order of the commands, and the values of each command, without names that it lacks.

    `axes` are the names by whose values jobs can be compared.
    """

    names: Sequence[str]
    values: Sequence[Mapping[str, str]]
    axes: Sequence[str]


def find_parameters(commands: Sequence[str]) -> Parameters:
    """What varies among commands with the same action; a command that is alone has no parameters."""
    values: list[dict[str, str]] = [{} for _ in commands]
    names: dict[str, None] = {}
    axes: set[str] = set()
    for sweep in _sweeps(commands).values():
        if len(sweep) > 1:
            varying = _varying([parts for _, parts in sweep])
            names.update(dict.fromkeys(varying))
            for index, parts in sweep:
                values[index] = _values_of(parts, varying)
            axes.update(_axes(tuple(varying), [values[index] for index, _ in sweep]))
    return Parameters(tuple(names), values, tuple(name for name in names if name in axes))


def _axes(names: Sequence[str], jobs: Sequence[Mapping[str, str]]) -> Sequence[str]:
    """All but those that name the jobs; the first, if all do: it is what varies."""
    return [name for name in names if not _names_jobs([job.get(name) for job in jobs])] or names[:1]


def _names_jobs(values: Sequence[str | None]) -> bool:
    """Whether each job has a value of its own, and it is no quantity: a sampled learning rate is distinct, too.

    In a few jobs, each may have a word of its own by chance (adam, sgd, lion), but not a path.
    """
    words = [value for value in values if value is not None]
    if len(set(words)) < len(values) or len(words) < _FEWEST or all(map(_is_number, words)):
        return False
    return len(words) > _FEW or all(map(_PATH.search, words))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _sweeps(commands: Sequence[str]) -> Mapping[tuple[str, ...], list[tuple[int, _Parts]]]:
    """By action: the words without a name, with their numbers left open."""
    found: dict[tuple[str, ...], list[tuple[int, _Parts]]] = {}
    open_words: dict[str, str] = {}
    for index, command in enumerate(commands):
        parts = _parts(command[:_LONGEST])
        for word in parts.alone:
            if word not in open_words:
                open_words[word] = PLACEHOLDER if word[0] in "\"'" else template_of(word)
        found.setdefault(tuple(open_words[word] for word in parts.alone), []).append((index, parts))
    return found


def _parts(command: str) -> _Parts:
    named: dict[str, str] = {}
    alone: list[str] = []
    words = _WORD.findall(command)
    at, count = 0, len(words)
    while at < count:
        word = words[at]
        at += 1
        if word[0] == "-" and _OPTION.match(word):
            name, equals, value = word.lstrip("-").partition("=")
            if not equals and at < count and _is_value(words[at]):
                value = words[at]
                at += 1
            _add(named, name, value if equals or value else PRESENT)
        elif redirection := _REDIRECTION.match(word):  # redirections are not part of the action
            at += redirection.end() == len(word)
        elif "=" in word and (match := _ASSIGNED.fullmatch(word)):
            _add(named, match[1].lstrip("+~"), match[2])
        else:
            alone.append(word)
    return _Parts(named, alone)


def _is_value(word: str) -> bool:
    """Whether it may be the value of the preceding option: it is not an option itself, but may be a negative number."""
    return not (_OPTION.match(word) or word[0] in _BY_SHELL or _REDIRECTION.match(word) or word == "--")


def _add(named: dict[str, str], name: str, value: str) -> None:
    named[name] = f"{named[name]} {value}" if name in named else value


def _varying(sweep: Sequence[_Parts]) -> Mapping[str, int | None]:
    """The names, in order; for `#1`, the index of the word without a name."""
    known: dict[str, str] = {}
    counts: Counter[str] = Counter()
    differing: set[str] = set()
    for parts in sweep:
        counts.update(parts.named.keys())
        for name, value in parts.named.items():
            if known.setdefault(name, value) != value:
                differing.add(name)
    found: dict[str, int | None] = {name: None for name in known if name in differing or counts[name] < len(sweep)}
    first = sweep[0].alone
    places = [place for place in range(len(first)) if any(parts.alone[place] != first[place] for parts in sweep)]
    return found | {f"#{number}": place for number, place in enumerate(places, 1)}


def _values_of(parts: _Parts, varying: Mapping[str, int | None]) -> dict[str, str]:
    return {
        name: _bare(parts.alone[place] if place is not None else parts.named[name])
        for name, place in varying.items()
        if place is not None or name in parts.named
    }


def _bare(word: str) -> str:
    """What the shell would pass on: without quotes, and without the `;` that ends a command."""
    return _QUOTES.sub(_meant, word.rstrip(";"))


def _meant(match: re.Match[str]) -> str:
    escaped, weak, strong = match.groups()
    return escaped or (_ESCAPED.sub(r"\1", weak) if weak else strong or "")
