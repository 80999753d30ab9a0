"""What our commands need of click beyond click: options with several values, values with a grammar, help in sections.

It knows how arguments are written, not what any of them is for.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import click

from simple_gpu_scheduler.base.program import LONG, PROGRAM
from simple_gpu_scheduler.base.values import Any, NamedTuple

_BETWEEN = "\0"  # the one character that no argument can hold


class SeveralValues(click.Option):
    """An option that takes all following words that look like its values, and may be given several times.

    click's own options take a fixed number. `takes` says what looks like a value. The parameter's value is a tuple of
    the words for each time that the option was given.
    """

    def __init__(self, *args: Any, takes: Callable[[str], bool], example: str, **kwargs: Any) -> None:
        words = Parsed("words", lambda text: tuple(text.split(_BETWEEN)))
        super().__init__(*args, **{"multiple": True, "type": words, **kwargs})
        self.takes = takes
        self.example = example.replace(LONG, PROGRAM)

    @staticmethod
    def joined(words: Sequence[str]) -> str:
        """Several words as the one that click gets."""
        return _BETWEEN.join(words)


class OptionalValue(click.Option):
    """An option that takes the next word if that looks like its value; otherwise its value is empty."""

    def __init__(self, *args: Any, takes: Callable[[str], bool], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.takes = takes


class _Context(click.Context):
    @property
    def command_path(self) -> str:
        """The words that call the command; the default command has none of its own."""
        return super().command_path.strip()


class Section(NamedTuple):
    """A section of a command's help: its heading, and its options."""

    heading: str
    options: Sequence[click.Option]


class Defaults(NamedTuple):
    """Defaults for options, by the names of their parameters, as they would be typed; and the file that sets them."""

    values: Mapping[str, str | list[str]] = {}
    said_by: str = ""


class Command(click.Command):
    """A command whose options may be `SeveralValues` and are shown in sections, with examples at the end."""

    context_class = _Context

    def __init__(
        self,
        name: str,
        *params: click.Parameter,
        sections: Sequence[Section] = (),
        commands: Sequence[tuple[str, str]] = (),
        examples: str,
        if_unknown: str = "",
        hint_at: Callable[[Sequence[str]], str] | None = None,
        defaults: Callable[[click.Context], Defaults] = lambda _ctx: Defaults(),
        **kwargs: Any,
    ) -> None:
        """`params` are the arguments, and options that belong to no section; `commands` are listed in the help.

        `if_unknown`: what to say of an option that is none and is like none. `hint_at`: what to say, if anything,
        instead of naming an unknown option, given the words from the first that is no option.
        """
        all_params = [*(option for section in sections for option in section.options), *params]
        super().__init__(name, params=all_params, **kwargs)
        self._help = _option_that_prints(click.Context.get_help, "-h", "--help", help="Show this message and exit.")
        self.sections = sections
        self.commands = commands
        self.examples = examples.replace(LONG, PROGRAM)
        self.if_unknown = if_unknown
        self.hint_at = hint_at
        self._find_defaults = defaults
        self._defaults = Defaults()

    def get_help_option(self, ctx: click.Context) -> click.Option | None:  # noqa: ARG002 - click's name
        """`--help`, without click's own, which looks for a translation at each start."""
        return self._help

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Make several values one, as click wants it."""
        ctx.meta["argv"] = tuple(args)  # as they were typed
        if not ctx.resilient_parsing:
            self._defaults = self._find_defaults(ctx)
            ctx.default_map = dict(self._defaults.values)
        several = [param for param in self.params if isinstance(param, SeveralValues)]
        if not ctx.resilient_parsing:
            # Everything after the first word of another program belongs to that program.
            with_value = None if ctx.allow_interspersed_args else _names_of_valued(self.params)
            try:
                args = join_values(args, several, with_value)
            except click.UsageError as error:
                error.ctx = ctx  # the message names the help of this command
                raise
            args = join_optional(args, [param for param in self.params if isinstance(param, OptionalValue)])
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(self._say_unknown(error.option_name, ctx.meta["argv"]), ctx) from None
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # as above
            raise

    def _say_unknown(self, option: str, argv: Sequence[str]) -> str:
        words = _from_first_word(argv, self.params) if self.hint_at else []
        if words and self.hint_at and (hint := self.hint_at(words)):
            return hint
        return f"No such option {option}. {_like(option, self.params) or self.if_unknown}".strip()

    def shown_sections(self, ctx: click.Context) -> list[Section]:
        """The sections in their order, and those options that are in none."""
        in_sections = [option for section in self.sections for option in section.options]
        others = [each for each in self.get_params(ctx) if isinstance(each, click.Option) and each not in in_sections]
        return [*self.sections, Section("Other" if in_sections else "Options", others)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, then the options by section, and examples."""
        if self.commands:
            with formatter.section("Commands (see COMMAND --help)"):
                formatter.write_dl(self.commands)
        for heading, options in self.shown_sections(ctx):
            with formatter.section(heading):
                formatter.write_dl([self._record(ctx, each) for each in options])
        with formatter.section("Examples"):
            for line in self.examples.strip().splitlines():
                formatter.write(f"  {line}\n" if line else "\n")

    def _record(self, ctx: click.Context, option: click.Option) -> tuple[str, str]:
        """Its names and its help, with the default that applies here."""
        names, text = option.get_help_record(ctx) or ("", "")
        value = self._defaults.values.get(option.name or "")
        if value is not None:
            shown = (value if isinstance(value, str) else " ".join(value)).replace(_BETWEEN, " ")
            text = f"{text.partition('  [default:')[0]}  [default: {shown}, from {self._defaults.said_by}]"
        return names, text


def _like(word: str, params: Iterable[click.Parameter]) -> str:
    """A hint at the option that may have been meant by an unknown one."""
    from .hints import options_like  # noqa: PLC0415 - only an error needs it

    close = options_like(word, [name for param in params for name in param.opts if name.startswith("--")])
    return f"Did you mean {' or '.join(close)}?" if close else ""


def _from_first_word(args: Iterable[str], params: Sequence[click.Parameter]) -> list[str]:
    """The words as they were typed, from the first that is neither an option nor a value."""
    by_name = {name: param for param in params if isinstance(param, click.Option) for name in param.opts}
    rest = list(args)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option = by_name.get(rest.pop(0))
        if isinstance(option, OptionalValue):
            del rest[: int(bool(rest) and option.takes(rest[0]))]
        elif isinstance(option, SeveralValues):
            while rest and option.takes(rest[0]):
                rest.pop(0)
        elif option and not option.is_flag:
            del rest[:1]
    return rest


def _names_of_valued(params: Iterable[click.Parameter]) -> set[str]:
    options = (param for param in params if isinstance(param, click.Option) and not param.is_flag)
    return {name for option in options for name in option.opts}


def join_values(
    args: Iterable[str], options: Iterable[SeveralValues], with_value: Collection[str] | None = None
) -> list[str]:
    """In `--gpus 0 1 -v`, join the 0 and the 1 to one word; leave what follows `--` alone.

    If `with_value` has the names of all options with a value, also leave alone what follows the first word that is
    neither an option nor a value.
    """
    by_name = {name: option for option in options for name in option.opts}
    rest = list(args)
    result: list[str] = []
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        option = by_name.get(name if equals and name.startswith("--") else word)
        if word == "--":
            return [*result, word, *rest]
        if with_value is not None and not word.startswith("-"):
            return [*result, word, *rest]
        if option is None:
            taken = int(word in (with_value or ()))
            result += [word, *rest[:taken]]
            del rest[:taken]
            continue
        values = [value] if equals else []
        while rest and option.takes(rest[0]):
            values.append(rest.pop(0))
        if not values:
            raise click.UsageError(_without_value(option, rest))
        result += [option.opts[0], _BETWEEN.join(values)]
    return result


def join_optional(args: Iterable[str], options: Iterable[OptionalValue]) -> list[str]:
    """`--resume RUN` and a bare `--resume` both as one word with its value."""
    by_name = {name: option for option in options for name in option.opts}
    rest, result = list(args), list[str]()
    while rest and rest[0] != "--":
        word = rest.pop(0)
        if word in by_name:
            has_value = bool(rest) and by_name[word].takes(rest[0])
            word = f"{word}={rest.pop(0) if has_value else ''}"
        result.append(word)
    return result + rest


def _without_value(option: SeveralValues, rest: list[str]) -> str:
    found = f", not '{rest[0]}'" if rest and not rest[0].startswith("-") else ""
    return f"{option.opts[0]} must be followed by {option.metavar}{found}; for example: {option.example}"


class Parsed(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic only in newer versions of click
    """A value that a function reads; its ValueError is the message."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What the function makes of the text."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


def version_option(version: str) -> click.Option:
    """`--version`, without click's own, which looks the version up in the slow way."""
    return _option_that_prints(lambda _ctx: version, "--version", help="Show the version and exit.")


def _option_that_prints(text: Callable[[click.Context], str], *names: str, help: str) -> click.Option:  # noqa: A002 - as click's
    def show(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
        if asked and not ctx.resilient_parsing:
            click.echo(text(ctx))
            ctx.exit()

    return click.Option(names, is_flag=True, is_eager=True, expose_value=False, callback=show, help=help)
