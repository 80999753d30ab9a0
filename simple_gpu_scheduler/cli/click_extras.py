"""click's command for each of ours, and what it needs beyond click: options with several values, help in sections.

It is loaded only if `reader` cannot read a command line. It knows how arguments are written, not what any of them is
for.
"""

import re

import click

from simple_gpu_scheduler.base.program import LONG, PROGRAM
from simple_gpu_scheduler.base.values import Any, Callable, Collection, Iterable, Sequence

from .call import see_help
from .declarations import Argument, Command, CommandLine, Defaults, OneOf, Option, Parsed, UsageError, Whole

_BETWEEN = "\0"  # the one character that no argument can hold
_EXTRA = re.compile(r"Got unexpected extra argument \((\S+)\)")


def read_by_click(command: Command, argv: Sequence[str], path: str, defaults: Defaults) -> CommandLine | int:
    """What was typed; or an exit code, if something was printed instead."""
    try:
        context = ClickCommand(command, defaults).make_context(path, list(argv))
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        raise see_help(error.format_message(), path) from None
    typed = {option.key for option in command.options if _was_typed(context, option)}
    return CommandLine(context.params, frozenset(typed), tuple(argv))


def _was_typed(context: click.Context, option: Option) -> bool:
    return context.get_parameter_source(option.key) == click.core.ParameterSource.COMMANDLINE


class ClickCommand(click.Command):
    """The same command for click, whose context gets the values. Its help has sections, and examples at the end."""

    def __init__(self, declared: Command, defaults: Defaults = Defaults()) -> None:  # noqa: B008 - a value
        options = [(option, _option(option)) for option in declared.options]
        params: list[click.Parameter] = [made for _, made in options]
        if declared.argument:
            params.append(_argument(declared.argument))
        if declared.version:
            params.append(_option_that_prints(lambda _ctx: declared.version, "--version", help=_VERSION_HELP))
        settings = {"allow_interspersed_args": not declared.is_for_program}
        super().__init__(declared.name, params=params, help=declared.help, context_settings=settings)
        self._help = _option_that_prints(click.Context.get_help, "-h", "--help", help="Show this message and exit.")
        self._made = {option.key: made for option, made in options}
        self.declared = declared
        self.examples = declared.examples.replace(LONG, PROGRAM)
        self._defaults = defaults

    def get_help_option(self, ctx: click.Context) -> click.Option | None:  # noqa: ARG002 - click's name
        """`--help`, without click's own, which looks for a translation at each start."""
        return self._help

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Make several values one, as click wants it."""
        argv = ctx.meta["argv"] = tuple(args)  # as they were typed; completion asks for it
        if not ctx.resilient_parsing:
            ctx.default_map = {
                key: _as_click_wants(self._made[key], given) for key, given in self._defaults.given.items()
            }
            args = join_optional(join_values(args, self.declared), self.declared.options)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(self._say_unknown(error.option_name, argv)) from None
        except click.UsageError as error:
            extra = _EXTRA.fullmatch(error.message)
            hint = self.declared.if_extra(extra[1]) if extra and self.declared.if_extra else ""
            if not hint:
                raise
            raise click.UsageError(f"{error.message}; {hint}") from None

    def _say_unknown(self, option: str, argv: Sequence[str]) -> str:
        declared = self.declared
        words = from_first_word(argv, declared.options) if declared.hint_at else []
        if words and declared.hint_at and (hint := declared.hint_at(words)):
            return hint
        return f"No such option {option}. {_like(option, self.params) or declared.if_unknown}".strip()

    def shown_sections(self, ctx: click.Context) -> list[tuple[str, list[click.Option]]]:
        """The sections in their order, and those options that are in none."""
        sections = [
            (each.heading, [self._made[option.key] for option in each.options]) for each in self.declared.sections
        ]
        in_sections = [option for _, options in sections for option in options]
        others = [each for each in self.get_params(ctx) if isinstance(each, click.Option) and each not in in_sections]
        return [*sections, ("Other" if in_sections else "Options", others)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, then the options by section, and examples."""
        if self.declared.commands:
            with formatter.section("Commands (see COMMAND --help)"):
                formatter.write_dl(self.declared.commands)
        for heading, options in self.shown_sections(ctx):
            with formatter.section(heading):
                formatter.write_dl([self._record(ctx, each) for each in options])
        with formatter.section("Examples"):
            for line in self.examples.strip().splitlines():
                formatter.write(f"  {line}\n" if line else "\n")

    def _record(self, ctx: click.Context, option: click.Option) -> tuple[str, str]:
        """Its names and its help, with the default that applies here."""
        names, text = option.get_help_record(ctx) or ("", "")
        if given := self._defaults.given.get(option.name or ""):
            shown = " ".join(each if isinstance(each, str) else " ".join(each) for each in given)
            text = f"{text.partition('  [default:')[0]}  [default: {shown}, from {self._defaults.said_by}]"
        return names, text


def _as_click_wants(option: click.Option, given: Sequence[Any]) -> Any:
    """Several words as one."""
    typed = [each if isinstance(each, str) else _BETWEEN.join(each) for each in given]
    return typed if option.multiple else typed[0]


def _option(declared: Option) -> click.Option:
    default = {} if declared.default is None else {"default": declared.default}  # to click, None may be one
    complete = declared.complete
    return click.Option(
        [*declared.typed_names, declared.key],
        type=_type(declared),
        help=declared.help,
        metavar=declared.metavar,
        is_flag=declared.is_flag or None,
        multiple=declared.multiple,
        nargs=declared.nargs,
        callback=_callback(declared.then),
        shell_complete=(lambda ctx, _param, begin: complete(ctx.meta["argv"], begin)) if complete else None,
        envvar=declared.envvar or None,
        **default,
    )


def _type(declared: Option) -> Any:
    kind = declared.kind
    if isinstance(kind, Whole):
        return click.IntRange(kind.least, kind.most)
    if isinstance(kind, OneOf):
        return click.Choice(list(kind.words))
    if isinstance(kind, Parsed):
        return _ParsedType(kind)
    if declared.takes and declared.multiple:
        return _ParsedType(Parsed("words", lambda text: tuple(text.split(_BETWEEN))))
    return None


def _callback(then: Callable[[Any], Any] | None) -> Callable[[click.Context, click.Parameter, Any], Any] | None:
    def call(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
        try:
            return then(value) if then else value
        except UsageError as error:
            raise click.UsageError(str(error)) from None

    return call if then else None


def _argument(declared: Argument) -> click.Argument:
    def complete(ctx: click.Context, param: click.Parameter, begin: str) -> Any:
        found = declared.complete(ctx.meta["argv"], begin) if declared.complete else ()
        return found or click.Path().shell_complete(ctx, param, begin)

    return click.Argument(
        [declared.key],
        nargs=-1 if declared.is_many else 1,
        required=declared.is_required,
        metavar=declared.metavar,
        shell_complete=complete if declared.complete else None,
    )


def _like(word: str, params: Iterable[click.Parameter]) -> str:
    """A hint at the option that may have been meant by an unknown one."""
    from .hints import options_like  # noqa: PLC0415 - only an error needs it

    close = options_like(word, [name for param in params for name in param.opts if name.startswith("--")])
    return f"Did you mean {' or '.join(close)}?" if close else ""


def from_first_word(args: Iterable[str], options: Sequence[Option]) -> list[str]:
    """The words as they were typed, from the first that is neither an option nor a value."""
    by_name = {name: option for option in options for name in option.typed_names}
    rest = list(args)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option = by_name.get(rest.pop(0))
        if option and option.takes:
            while rest and option.takes(rest[0]):
                rest.pop(0)
                if not option.multiple:
                    break
        elif option and not option.is_flag:
            del rest[:1]
    return rest


def join_values(args: Iterable[str], command: Command) -> list[str]:
    """In `--gpus 0 1 -v`, join the 0 and the 1 to one word; leave what follows `--` alone.

    In a command line for another program, also leave alone what follows the first word that is neither an option nor a
    value: all of that belongs to the program.
    """
    by_name = {name: option for option in command.options for name in option.typed_names}
    valued: Collection[str] = [name for name, option in by_name.items() if not option.is_flag]
    rest = list(args)
    result: list[str] = []
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        option = by_name.get(name if equals and name.startswith("--") else word)
        if word == "--" or (command.is_for_program and not word.startswith("-")):
            return [*result, word, *rest]
        if option is None or not (option.takes and option.multiple):
            taken = int(command.is_for_program and word in valued)
            result += [word, *rest[:taken]]
            del rest[:taken]
            continue
        values = [value] if equals else []
        while rest and option.takes(rest[0]):
            values.append(rest.pop(0))
        if not values:
            raise click.UsageError(_without_value(option, rest))
        result += [option.names[0], _BETWEEN.join(values)]
    return result


def join_optional(args: Iterable[str], options: Iterable[Option]) -> list[str]:
    """`--resume RUN` and a bare `--resume` both as one word with its value."""
    takes = {name: each.takes for each in options if each.takes and not each.multiple for name in each.typed_names}
    rest, result = list(args), list[str]()
    while rest and rest[0] != "--":
        word = rest.pop(0)
        if word in takes:
            has_value = bool(rest) and takes[word](rest[0])
            word = f"{word}={rest.pop(0) if has_value else ''}"
        result.append(word)
    return result + rest


def _without_value(option: Option, rest: list[str]) -> str:
    found = f", not '{rest[0]}'" if rest and not rest[0].startswith("-") else ""
    example = option.example.replace(LONG, PROGRAM)
    return f"{option.names[0]} must be followed by {option.metavar}{found}; for example: {example}"


class _ParsedType(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic only in newer versions of click
    def __init__(self, kind: Parsed) -> None:
        self.name = kind.name
        self._parse = kind.parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What the function makes of the text."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


_VERSION_HELP = "Show the version and exit."


def _option_that_prints(text: Callable[[click.Context], str], *names: str, help: str) -> click.Option:  # noqa: A002 - as click's
    """`--help` and `--version`, without click's own, which looks the version up in the slow way."""

    def show(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
        if asked and not ctx.resilient_parsing:
            click.echo(text(ctx))
            ctx.exit()

    return click.Option(names, is_flag=True, is_eager=True, expose_value=False, callback=show, help=help)
