"""Whatever the reader reads, click reads the same; and it reads what people usually type."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.cli.click_extras import read_by_click
from simple_gpu_scheduler.cli.commands import COMMANDS, load
from simple_gpu_scheduler.cli.commands.hypersearch import hypersearch
from simple_gpu_scheduler.cli.declarations import Command, CommandLine, Defaults, OneOf, Option
from simple_gpu_scheduler.cli.reader import read

EACH = [*map(load, ("", *COMMANDS)), hypersearch]
VALUES = [
    "0", "1", "3", "007", "-1", "-.5", "+2", " 4 ", "1_0", "9999999", "0.5", "0,1", "0-3", "0:1", "GPU-1a", "all",
    "90", "5m", "1h30m", "10G", "512M", "10", "never", "soon,fail=3", "now,fail=10%", "end", "end,fail", "me", "root",
    "nobody?", "fifo", "sjf", "aged:0.5", "learned:w.json", "jobs=20", "jobs=3 gap=5", "x", "a b", "a=1", "lr=", "-",
    "--", "", "é", "- x", "-x", "--x", "--x=1", "x.jsonl", ".", "/", "train --lr {lr}", "\udcff",
]  # fmt: skip


def by_click(
    command: Command, argv: Sequence[str], defaults: Mapping[str, Sequence[object]] | None = None
) -> CommandLine | None:
    """What click reads; None for an error, and for what only prints."""
    with suppress(UserError):
        line = read_by_click(command, argv, "it", Defaults(defaults or {}))
        return line if isinstance(line, CommandLine) else None
    return None


def is_good(option: Option, value: str) -> bool:
    if value.startswith("-"):
        return bool(option.takes and option.multiple and option.takes(value))
    try:
        return option.takes(value) if option.takes else not option.kind or option.kind.parse(value) is not None
    except (ValueError, UserError):
        return False


def values_of(option: Option) -> list[str]:
    return [*VALUES, *(option.kind.words if isinstance(option.kind, OneOf) else ())]


def plain(option: Option) -> st.SearchStrategy[list[str]]:
    """The option as people type it."""
    name = st.sampled_from(option.typed_names)
    if option.is_flag:
        return st.tuples(name).map(list)
    value = st.sampled_from([value for value in values_of(option) if is_good(option, value)])
    if option.takes:
        most = None if option.multiple else 1
        return st.tuples(name, st.lists(value, min_size=int(option.multiple), max_size=most)).map(
            lambda x: [x[0], *x[1]]
        )
    values = st.tuples(name, *[value] * option.nargs).map(list)
    long = [each for each in option.typed_names if each.startswith("--")]
    if option.nargs > 1 or not long:
        return values
    return values | st.tuples(st.sampled_from(long), value).map(lambda x: ["=".join(x)])


def joined(pieces: Sequence[Sequence[str]]) -> list[str]:
    return [word for piece in pieces for word in piece]


def lines(command: Command, option: Callable[[Option], st.SearchStrategy[list[str]]], words: Sequence[str]):
    piece = st.one_of([option(each) for each in command.options])
    some = st.lists(piece, max_size=4, unique_by=lambda words: words[0].partition("=")[0]).map(joined)
    found = st.lists(st.sampled_from(words), max_size=3 if command.argument and command.argument.is_many else 1)
    if command.argument is None:
        return some
    if command.argument.is_required:
        found = found.map(lambda x: x or ["word"])
    at_end = st.tuples(some, st.sampled_from([[], ["--"]]), found).map(joined)
    return at_end | st.tuples(some, found, some).map(joined)


def often(command: Command) -> settings:
    """As often as there is much to find."""
    return settings(max_examples=20 + 3 * len(command.options))


def wild(option: Option) -> st.SearchStrategy[list[str]]:
    """The option as nobody should type it."""
    name = st.sampled_from([*option.typed_names, *(each[:-1] for each in option.typed_names)])
    value = st.sampled_from([*values_of(option), *option.typed_names])
    apart = st.tuples(name, st.lists(value, max_size=3)).map(lambda x: [x[0], *x[1]])
    return apart | st.tuples(name, st.sampled_from(["", "="]), value).map(lambda x: ["".join(x)])


@pytest.mark.parametrize("command", EACH, ids=lambda command: command.name or "-")
def test_what_people_type_is_read_as_click_reads_it(command: Command) -> None:
    read_lines = []

    @often(command)
    @given(lines(command, plain, ["word", "a b", "x.txt", "é", "ab=c"]))
    def check(argv: list[str]) -> None:
        line = read(command, argv, {}, {})
        assert line == by_click(command, argv)
        read_lines.append(line is not None)

    check()
    assert sum(read_lines) > len(read_lines) / 2  # some name a GPU twice


@pytest.mark.parametrize("command", EACH, ids=lambda command: command.name or "-")
def test_whatever_is_read_click_reads_the_same(command: Command) -> None:
    names = [name for each in (command, hypersearch) for option in each.options for name in option.typed_names]
    words = [*VALUES, *names, "--help", "-h", "--version", "-qv", "-n3"]

    @often(command)
    @given(lines(command, wild, words) | lines(command, lambda option: plain(option) | wild(option), words))
    def check(argv: list[str]) -> None:
        line = read(command, argv, {}, {})
        if line is not None:
            assert line == by_click(command, argv)

    check()


@pytest.mark.parametrize("value", ["7", "", "0", "x", " 8 "])
@pytest.mark.parametrize("argv", [[], ["--keep-runs", "5"]])
def test_a_default_may_come_from_the_environment(value: str, argv: list[str], monkeypatch) -> None:
    monkeypatch.setenv("SGS_KEEP_RUNS", value)
    [run, *_] = EACH
    for defaults in ({}, {"keep_runs": ["9"]}):
        assert read(run, argv, {"SGS_KEEP_RUNS": value}, defaults) == by_click(run, argv, defaults)


@pytest.mark.parametrize("value", ["1", "", "0", "no", "x"])
@pytest.mark.parametrize("argv", [[], ["--no-samples"]])
def test_a_flag_may_come_from_the_environment(value: str, argv: list[str], monkeypatch) -> None:
    monkeypatch.setenv("SGS_NO_SAMPLES", value)
    [run, *_] = EACH
    line = read(run, argv, {"SGS_NO_SAMPLES": value}, {})
    assert line == (by_click(run, argv, {}) if value in ("1", "") else None)
    if line:
        assert line.values["no_samples"] is (value == "1" or bool(argv))


@pytest.mark.parametrize("argv", [[], ["--gpus", "7"], ["--retries", "5", "--share-with", "root"]])
def test_a_default_may_come_from_the_machine_file(argv: list[str]) -> None:
    given = {"gpus": [("0", "1")], "retries": ["2"], "share_with": ["me", "root"], "policy": ["sjf"], "halt": ["never"]}
    [run, *_] = EACH
    line = read(run, argv, {}, given)
    assert line
    assert line == by_click(run, argv, given)
    assert line.values["policy"] == "sjf"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        *((EACH[0], line) for line in ("--help", "-qv", "--gpu 0", "--gpus x", "--retries -1", "--logs -- x")),
        *((EACH[0], line) for line in ("--dry-run=1", "--output", "--logs -x", "--version", "-q=1")),
        (hypersearch, "--when=a b"),
        (load("run"), "- --gpus 0"),
        (load("status"), "a b"),
        (load("doctor"), "a"),
        (load("cancel"), ""),
    ],
)
def test_what_is_unusual_or_wrong_is_left_to_click(command: Command, line: str) -> None:
    assert read(command, line.split(), {}, {}) is None
