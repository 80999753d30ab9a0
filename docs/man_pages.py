"""Writes the man pages, docs/*.1, from the commands' own --help: run bin/man-pages after you have changed one.

Read one with `man docs/simple_gpu_scheduler.1`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import dedent

import click

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.program import SHORT
from simple_gpu_scheduler.cli.click_extras import ClickCommand
from simple_gpu_scheduler.cli.commands import COMMANDS, load
from simple_gpu_scheduler.cli.commands.hypersearch import hypersearch

HERE = Path(__file__).parent
_NAMES = {
    "simple_gpu_scheduler": f"simple_gpu_scheduler, {SHORT} \\- run shell commands on the free GPUs of one machine",
    "simple_hypersearch": "simple_hypersearch \\- print the commands of a parameter sweep",
}


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    commands = [ClickCommand(load(each)) for each in COMMANDS]
    return {
        f"{name}.1": "\n".join([*_page(name, command, others), ""])
        for name, command, others in (
            ("simple_gpu_scheduler", ClickCommand(load("")), commands),
            ("simple_hypersearch", ClickCommand(hypersearch), []),
        )
    }


def _page(name: str, command: ClickCommand, others: Iterable[ClickCommand]) -> Iterator[str]:
    yield f'.TH {name.upper()} 1 "" "{name} {__version__}" "User Commands"'
    yield ".SH NAME"
    yield _NAMES[name]
    yield ".SH SYNOPSIS"
    yield from _usage(name, command)
    for other in others:
        yield ".br"
        yield from _usage(f"{name} {other.name}", other)
    yield ".SH DESCRIPTION"
    yield from _text(command.help)
    yield ".SH OPTIONS"
    yield from _options(command, ".SS {}")
    if others:
        yield ".SH COMMANDS"
    for other in others:
        yield f".SS {_escaped(other.name)}"
        yield from _text(other.help)
        yield from _options(other, ".PP\n.I {}")
        yield from _examples(other)
    yield ".SH EXAMPLES"
    yield from _examples(command)


def _usage(name: str, command: ClickCommand) -> Iterator[str]:
    pieces = " ".join(command.collect_usage_pieces(click.Context(command)))
    yield f".B {_escaped(name)}"
    yield _escaped(pieces)


def _options(command: ClickCommand, heading: str) -> Iterator[str]:
    context = click.Context(command, help_option_names=["-h", "--help"])
    for title, options in command.shown_sections(context):
        yield heading.format(_escaped(title))
        for option in options:
            names, text = option.get_help_record(context)
            yield ".TP"
            yield f".B {_escaped(names)}"
            yield _escaped(text)


def _text(text: str) -> Iterator[str]:
    for paragraph in dedent(text).strip().split("\n\n"):
        yield ".PP"
        if paragraph.startswith("\b"):
            yield from _as_it_is(paragraph.split("\n")[1:])
        else:
            yield _escaped(" ".join(paragraph.split("\n")))


def _examples(command: ClickCommand) -> Iterator[str]:
    yield ".PP"
    yield from _as_it_is(command.examples.strip().splitlines())


def _as_it_is(lines: Iterable[str]) -> Iterator[str]:
    yield ".nf"
    yield from map(_escaped, lines)
    yield ".fi"


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    for file, page in pages().items():
        (HERE / file).write_text(page)
