"""What our commands need of click beyond click: options with several values, values with a grammar, help in sections.

It knows how arguments are written, not what any of them is for.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click


class SeveralValues(click.Option):
    """An option that takes all the words behind it that look like its values, and may be given several times.

    click's own options take a fixed number. `takes` says what looks like a value; `fewest` words are taken in any case.
    """

    def __init__(self, *args: Any, takes: Callable[[str], bool], example: str, fewest: int = 0, **kwargs: Any) -> None:
        super().__init__(*args, multiple=True, **kwargs)
        self.takes = takes
        self.example = example
        self.fewest = fewest


class Command(click.Command):
    """A command whose options may be `SeveralValues` and are shown in sections, with examples at the end."""

    def __init__(self, *args: Any, sections: Sequence[tuple[str, Sequence[str]]], examples: str, **kwargs: Any) -> None:
        super().__init__(*args, context_settings={"help_option_names": ["-h", "--help"]}, **kwargs)
        self.sections = sections
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give each value its option, as click wants it."""
        several = [param for param in self.params if isinstance(param, SeveralValues)]
        return super().parse_args(ctx, args if ctx.resilient_parsing else spread(args, several))

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usage line, without the empty name of a default command."""
        formatter.write_usage(ctx.command_path.strip(), " ".join(self.collect_usage_pieces(ctx)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by section, in the order of the sections."""
        records = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        for title, names in self.sections:
            with formatter.section(title):
                formatter.write_dl([record for name in names if (record := records.get(name))])
        with formatter.section("Examples"):
            for line in self.examples.strip().splitlines():
                formatter.write(f"  {line}\n" if line else "\n")


def spread(args: Iterable[str], options: Iterable[SeveralValues]) -> list[str]:
    """`--gpus 0 1 -v` as `--gpus 0 --gpus 1 -v`; what stands behind `--` is left alone."""
    by_name = {name: option for option in options for name in option.opts}
    rest = list(args)
    result: list[str] = []
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        option = by_name.get(name if equals and name.startswith("--") else word)
        if word == "--":
            return [*result, word, *rest]
        if option is None:
            result.append(word)
            continue
        values = [value] if equals else []
        while rest and (len(values) < option.fewest or option.takes(rest[0])):
            values.append(rest.pop(0))
        if not values:
            raise click.UsageError(_without_value(option, rest))
        result += [part for value in values for part in (option.opts[0], value)]
    return result


def _without_value(option: SeveralValues, rest: list[str]) -> str:
    found = f"; '{rest[0]}' is not one" if rest and not rest[0].startswith("-") else ""
    return f"{option.opts[0]} needs at least one value{found}. For example: {option.example}"


class Parsed(click.ParamType):
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
