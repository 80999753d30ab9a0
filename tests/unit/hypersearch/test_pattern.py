"""What may stand in a pattern, and how options and names reach the scheduler."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.hypersearch.commands import Sweeps
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, Rows, Sweep, WrittenValues
from simple_gpu_scheduler.jobfile.options import parse_options
from simple_gpu_scheduler.jobfile.shell_comments import find_comments


def lines_of(pattern: str, *, lines_end: bool = True, **settings) -> list[str]:
    """The lines of a grid, in its order; a setting that is none of a sweep's is a parameter."""
    known = {name: settings.pop(name) for name in list(settings) if name in Sweep._fields}
    words = {name: WrittenValues(tuple(values)) for name, values in settings.items()}
    sweep = Sweep(pattern, **{"parameters": words, "sampling_mode": IN_ORDER, "seed": 1, **known})
    return list(Sweeps([sweep], lines_end=lines_end).lines())


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("x {lr:.0e}", ["x 1e-03", "x 3e-05"]),
        ("x {lr} {i:03d}", ["x 0.001 001", "x 0.00003 002"]),
        ("x {lr} {i}/{n}", ["x 0.001 1/2", "x 0.00003 2/2"]),
        ("x {lr:>6.3f} '{lr:*<7}'", ["x ' 0.001' '0.001**'", "x ' 0.000' '3e-05**'"]),
        ("x {lr!s:>8}", ["x    0.001", "x    3e-05"]),
        ("{lr}{lr:.0e}", ["0.0011e-03", "0.000033e-05"]),
        ("awk '{{print $1}}' {lr}", ["awk '{print $1}' 0.001", "awk '{print $1}' 0.00003"]),
        ("find -exec echo {{}} {lr} +", ["find -exec echo {} 0.001 +", "find -exec echo {} 0.00003 +"]),
        ("x ${{HOME:-}} {{{lr}}} {{{{", ["x ${HOME:-} {0.001} {{", "x ${HOME:-} {0.00003} {{"]),
    ],
)
def test_placeholders_and_braces_of_the_shell(pattern, lines) -> None:
    assert lines_of(pattern, lr=["0.001", "0.00003"]) == lines


def test_numbers_are_formatted_as_what_they_are() -> None:
    assert lines_of("x {a:d} {a:,}", a=["12345678901234567890"]) == [
        "x 12345678901234567890 12,345,678,901,234,567,890"
    ]
    assert lines_of("x {i} {n}", i=["5", "6"]) == ["x 5 2", "x 6 2"]  # the user's own i
    assert lines_of("x {a:.1f} {b:>3}", a=["-2"], b=["a'"]) == ["x -2.0 ' a'\"'\"''"]


def test_parameters_named_as_options_and_attributes_are() -> None:
    names = {
        "batch-size": WrittenValues(("32",)),
        "opt.lr": WrittenValues(("0.1",)),
        "_x1": WrittenValues(("y",)),
        "größe": WrittenValues(("2",)),
    }
    (line,) = lines_of("x {batch-size} {opt.lr:.2f} {--opt.lr=opt.lr} {_x1}{größe}", parameters=names)
    assert line == "x 32 0.10 --opt.lr=0.1 y2"


@pytest.mark.parametrize(
    ("written", "there"),
    [
        ("{--momentum m}", " --momentum 0.9"),
        ("{--momentum=m}", " --momentum=0.9"),
        ("{opt.momentum=m}", " opt.momentum=0.9"),
        ("{+opt.momentum=m:.2f}", " +opt.momentum=0.90"),
        ("{?m}", " 0.9"),
        ("{?m!s}", " 0.9"),
    ],
)
def test_a_flag_comes_and_goes_with_its_parameter(written, there) -> None:
    settings = {"opt": ["sgd", "adam"], "m": ["0.9"], "when": {"m": 'opt == "sgd"'}}
    assert lines_of(f"x {{opt}}  {written} end", **settings) == [f"x sgd {there} end", "x adam end"]
    assert lines_of(f"x {{opt}} {written}", **settings) == [f"x sgd{there}", "x adam"]
    assert lines_of(f"{written} {{opt}}", **settings)[1] == " adam"
    assert lines_of(f"x {written}", m=["0.9"]) == [f"x{there}"]


@pytest.mark.parametrize(
    ("pattern", "values", "sentence"),
    [
        ("find -exec x {} {a}", ["1"], "{} is not a placeholder such as {NAME}, {NAME:.2f}, {NAME!s} or {--flag NAME}"),
        ("awk '{print}' {a}", ["1"], "or write {{print}} for braces of the shell"),
        ("x {lrate} {learning_rat}", ["1"], "there is no parameter of that name; add -p lrate VALUE..."),
        ("x {seed} {a}", ["1"], "no parameter of that name; add --repeat N"),
        (
            "x {--flag b} {a}",
            ["1"],
            "{--flag b}, but there is no parameter of that name; the flag must be followed by a parameter name; add",
        ),
        ("x {a!r}", ["1"], "{a!r} is not a placeholder"),
        ("x {a", ["1"], "the pattern has a '{' that belongs to no placeholder, at character 3"),
        ("x {{a}}", ["1"], "the pattern does not use the parameter a; write {a} in it, or leave out -p a"),
        ("x {a}", [], "the parameter a has no values; write -p a VALUE..."),
        ("x {a:d}", ["1", "1.5"], "{a:d} cannot take the value '1.5' of a: ':d' is for whole numbers"),
        ("x {a:.1f}", ["1", "b"], "{a:.1f} cannot take the value 'b' of a: ':.1f' cannot format text"),
        ("x {a:9999}", ["1"], "a width may have at most three digits"),
        ("x {i:q} {a}", ["1"], "{i:q} cannot take the value '1' of i: ':q' cannot format a whole number"),
    ],
)
def test_what_is_no_pattern_is_named(pattern, values, sentence) -> None:
    with pytest.raises(UserError) as refused:
        lines_of(pattern, a=values)
    assert sentence in str(refused.value)


def test_a_word_like_the_name_is_corrected() -> None:
    with pytest.raises(UserError, match="did you mean learning_rate"):
        lines_of("x {learning_rat}", learning_rate=["1"])
    with pytest.raises(
        UserError, match=r"m is not always present .*write its flag in the same braces, as in \{--m m\}"
    ):
        lines_of("x {a} {m}", a=["1"], m=["1"], when={"m": "a > 0"})


HOSTILE = st.text(st.characters(exclude_characters="\0", exclude_categories=()), max_size=6) | st.sampled_from(
    ["", " ", "a,b", "'", "a-2", "a", "a-2-2", "#", "#:", "=", "\udcff", "\u2028", "\u200b", "é", "x\ny", "gpus=2"]
)


@settings(max_examples=150, deadline=None)
@given(
    wishes=st.lists(HOSTILE, min_size=1, max_size=12, unique=True),
    pattern=st.sampled_from(["x {k}", "x {k} #: gpus=1"]),
)
def test_names_are_different_and_the_scheduler_takes_them(wishes, pattern) -> None:
    rows = Rows(("a", "k"), tuple((wish, str(number)) for number, wish in enumerate(wishes)))
    lines = lines_of(pattern, rows=rows, name="{a}", lines_end=False)
    names = [parse_options(line.encode()[find_comments(line.encode())[-1] + 2 :])["name"] for line in lines]
    assert len(set(names)) == len(names) == len(wishes)
    plain = [(wish, name) for wish, name in zip(wishes, names, strict=True) if wish.isascii() and wish.isalnum()]
    assert all(wish == name for wish, name in plain)


def test_a_name_needs_a_place() -> None:
    with pytest.raises(UserError, match="the pattern ends in a comment, so no name can follow it"):
        lines_of("x {a} # note", a=["1"], name="{a}")
    with pytest.raises(UserError, match="'name' is given twice"):
        lines_of("x #: name={a}", a=["1"], name="{a}")
    (line,) = lines_of("cat <<E\nhello\nE", name="j", lines_end=False)
    assert line == "cat <<E\nhello\nE\n#: name=j"


def hard(reason: str, pattern: str, values: Sequence[str] = ("1",), **settings):
    return pytest.param(pattern, values, settings, id=reason)


@pytest.mark.parametrize(
    ("pattern", "values", "settings"),
    [
        hard("a raw value with wrong options", "x {a!s}", ["y #: gpuz=2"]),
        hard(
            "options that are doubled in some combinations",
            "x #: {a} {b}",
            ["gpus=1", "time=1h"],
            b=["mem=1G", "time=1h"],
        ),
        hard("drawn values that are no right options", "x #: gpus={a}", ["normal:0:1"], samples=3),
        hard("options in the braces of a placeholder", "x {#:gpuz=a}"),
        hard("a raw note takes the name", "x {a!s}", ["y # note"], name="n"),
        hard("an open bracket takes the name", "x $( {a}", name="n"),
        hard("every line is a note and nothing runs", "# {a}"),
        hard("a default has no name", "#: gpus={a}", name="n"),
        hard("a format may make a newline", "x {a!s:c}", ["10"]),
        hard("a blank that its neighbour needs", "x {--m m}{a}", ["1"], m=["1"], when={"m": "a > 1"}),
        hard("a note that begins where a flag is missing", "x;{?m}#{a}", ["1"], m=["1"], when={"m": "a > 1"}),
        hard("a variable behind which a flag is missing", "x $FOO {?m}{a}", ["1"], m=["1"], when={"m": "a > 1"}),
        hard("a raw value ends the line", "x {a!s} {--m m}", ["\\"], m=["1"], when={"m": "2 > 3"}),
    ],
)
def test_what_the_scheduler_would_read_otherwise_is_refused(pattern, values, settings) -> None:
    with pytest.raises(UserError):
        lines_of(pattern, a=values, **settings)
