"""`simple_hypersearch`: prints the commands of a sweep, to be piped into the scheduler."""

import io
import os
import sys
from itertools import chain
from time import monotonic

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import signal, suppress
from simple_gpu_scheduler.base.values import Any, Collection, Iterable, Sequence
from simple_gpu_scheduler.cli.declarations import Argument, Command, OneOf, Option, Parsed, Section, Whole
from simple_gpu_scheduler.hypersearch.commands import Sweeps
from simple_gpu_scheduler.hypersearch.definitions import combine, parse_whole, parse_zip
from simple_gpu_scheduler.hypersearch.order import SAMPLERS
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, SHUFFLED, Sweep, WrittenValues, shown

_AT_ONCE = 1000  # lines in one write
_WAIT = 0.05  # seconds

_HELP = """Print PATTERN once for each combination of parameter values; {NAME} in it is replaced by the value.

A VALUE is a literal, or a generator of many: range:1:10, range:0:1:0.1, linspace:0:1:5, logspace:1e-5:1e-1:5; or, with
--n-samples, a random distribution: uniform:0:1, loguniform:1e-5:1e-1, int:1:10, normal:0:1. With -p NAME=VALUE it is
always a literal.

In PATTERN, {NAME} is the value quoted for the shell, {NAME:.0e} formats it, {NAME!s} leaves it unquoted. {--flag NAME}
is the flag with the value, or nothing if NAME has no value ({?NAME}: without a flag). {i} is the line's number, {n} the
number of lines, {seed} the number of the repeat (--repeat). Write literal braces as {{ and }}.
"""

_EXAMPLE = 'simple_hypersearch "python3 train.py --lr {lr}" -p lr 0.1 0.01'
_EXAMPLES = f"""
{_EXAMPLE}
simple_hypersearch "python3 train.py --lr {{lr}} --bs {{bs}}" -p lr 0.1 0.01 -p bs 32 64 | simple_gpu_scheduler --gpus 0
simple_hypersearch "train --lr {{lr}} --drop {{d}}" -p lr loguniform:1e-5:1e-1 -p d uniform:0:0.5 --n-samples 20
simple_hypersearch "train --lr {{lr}} --bs {{bs}}" -p lr 0.1 0.2 -p bs 32 64 --where "lr * bs < 10"
simple_hypersearch "train --opt {{opt}} {{--momentum m}}" -p opt sgd adam -p m 0.8 0.9 --when m 'opt == "sgd"'
simple_hypersearch "train --lr {{lr}} --seed {{seed}} --out runs/{{lr}}-{{seed}}" -p lr 0.1 0.01 --repeat 3
"""


def _is_value(word: str) -> bool:
    """Whether a word after `-p` is a value of it, and not an option."""
    if word == "-0":  # --null
        return False
    is_negative = word[1:].removeprefix(".")[:1].isdecimal()
    return not word.startswith("-") or word == "-" or " " in word or is_negative


def _typed_sweep(
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
    return f"{wrong}; quote the whole pattern, and any condition. For example: {_EXAMPLE}"


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


def _without_pattern(typed: Sweep) -> str:
    """The error if there is no pattern."""
    for name, words in typed.parameters.items():
        for word in words.words:
            if "{" in word:
                return (
                    f"there is no PATTERN; {shown(word)} was read as a value of {name}: "
                    "if it is the pattern, write it before the first -p"
                )
    return f"there is no PATTERN. For example: {_EXAMPLE}"


def _sweeps(paths: Iterable[str], typed: Sweep) -> list[Sweep]:
    """What is in the files, with what was typed, each with a pattern and a seed."""
    sweeps = [] if paths else [typed]
    for path in paths:
        from simple_gpu_scheduler.hypersearch.files import read_sweep_file  # noqa: PLC0415 - few sweeps come from files

        sweeps += [combine(sweep, typed) for sweep in read_sweep_file(path)]
    if not all(sweep.pattern for sweep in sweeps):
        raise UserError(_without_pattern(typed))
    random = int.from_bytes(os.urandom(4), "big")
    return [sweep if sweep.seed is not None else sweep._replace(seed=random) for sweep in sweeps]


def _prepared(sweeps: list[Sweep], paths: Sequence[str], *, lines_end: bool) -> Sweeps:
    try:
        return Sweeps(sweeps, lines_end=lines_end)
    except UserError as error:
        raise UserError(f"{paths[0]}: {error}" if len(paths) == 1 else str(error)) from None


def _hypersearch(from_files: Sequence[str], save: str | None, *, count: bool, null: bool, **typed: Any) -> None:
    # The reader may have gone (`| head`): that ends a filter without a message.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What was typed in another encoding comes out as it was.
        encoding = "utf-8" if sys.getfilesystemencoding() == "ascii" else sys.getfilesystemencoding()
        sys.stdout.reconfigure(encoding=encoding, errors="surrogateescape", newline="\n")
    sweeps = _sweeps(from_files, _typed_sweep(**typed))
    prepared = _prepared(sweeps, from_files, lines_end=not null)
    lines = iter([str(prepared.total)]) if count else prepared.lines()
    first = next(lines)  # where there is none, nothing is saved
    if save is not None:
        from simple_gpu_scheduler.hypersearch.files import save_sweep_file  # noqa: PLC0415 - as above

        save_sweep_file(save, sweeps)
    _print(chain([first], lines), "\0" if null and not count else "\n")
    with suppress(OSError):  # stderr has no reader, and all that matters has been printed
        for note in prepared.notes():
            print(f"simple_hypersearch: {note}", file=sys.stderr)


def _print(lines: Iterable[str], end: str) -> None:
    """Print in batches, but at once what took long to find: a GPU may be waiting for it."""
    batch: list[str] = []
    due = 0.0
    for line in lines:
        batch.append(line)
        if len(batch) == _AT_ONCE or monotonic() >= due:
            _write(batch, end)
            due = monotonic() + _WAIT
    _write(batch, end)


def _write(batch: list[str], end: str) -> None:
    if batch:
        sys.stdout.write(end.join(batch) + end)
        sys.stdout.flush()
        batch.clear()


def _flag(*names: str, help_text: str) -> Option:
    return Option(names, is_flag=True, help=help_text)


_PARAMETERS = Section(
    "Parameters",
    (
        Option(
            ["-p", "--parameter"],
            multiple=True,
            takes=_is_value,
            example=_EXAMPLE,
            metavar="NAME VALUE...",
            help="A parameter and its values; may be given several times.",
        ),
        Option(
            ["--from", "from_files"],
            multiple=True,
            metavar="FILE",
            help="Read sweeps from a .yaml (needs PyYAML), .toml, .json or .csv file; the keys are these options.",
        ),
        Option(
            ["--zip", "together"],
            multiple=True,
            metavar="A,B",
            help="Combine the values of these parameters in pairs, first with first.",
        ),
        Option(
            ["--where"],
            multiple=True,
            metavar="CONDITION",
            help="Keep only combinations for which this is true, such as 'lr * bs < 1'.",
        ),
        Option(
            ["--when"],
            nargs=2,
            multiple=True,
            metavar="NAME CONDITION",
            help="The parameter NAME exists only where this is true; write its flag as {--flag NAME}.",
        ),
        Option(
            ["--repeat"],
            kind=Whole(1),
            metavar="N",
            help="Print each command N times, with {seed} from 0 to N-1.",
        ),
    ),
)
_SAMPLES = Section(
    "Number and order",
    (
        Option(
            ["--sampling-mode"],
            kind=OneOf([SHUFFLED, IN_ORDER]),
            help=f"In random order, or in grid order.  [default: {SHUFFLED}]",
        ),
        Option(
            ["--n-samples", "samples"],
            kind=Whole(1),
            metavar="N",
            help="Print N different combinations.  [default: all]",
        ),
        Option(
            ["--sampler"],
            kind=OneOf(list(SAMPLERS)),
            help="Spread the samples more evenly than at random. Needs scipy: simple_gpu_scheduler[search].",
        ),
        Option(
            ["--seed"],
            kind=Parsed("number", parse_whole),
            metavar="N",
            help="The seed for random order and samples (unrelated to {seed}); the same N prints the same lines.",
        ),
    ),
)
_OUTPUT = Section(
    "Output",
    (
        Option(["--name"], metavar="PATTERN", help="Give each job a name, such as '{lr}-{bs}'."),
        _flag("-0", "--null", help_text="End commands with NUL, so that they may contain newlines."),
        _flag("--count", help_text="Print only the number of commands."),
        Option(["--save"], metavar="FILE", help="Save the sweep and its seed to a .json file that --from can read."),
    ),
)

hypersearch = Command(
    "simple_hypersearch",
    callback=_hypersearch,
    help=_HELP,
    version=f"simple_hypersearch {__version__}",
    argument=Argument("pattern", "PATTERN -p NAME VALUE..."),
    sections=(_PARAMETERS, _SAMPLES, _OUTPUT),
    examples=_EXAMPLES,
    if_unknown="Quote the whole command, including its own options; for a value that starts with a dash: "
    "-p NAME=VALUE.",
)
