"""Values reach the program as they are, wherever in the pattern they stand, and never become commands."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.hypersearch.commands import Sweeps
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, Sweep, WrittenValues
from simple_gpu_scheduler.jobfile.parse import split_options
from tests.conftest import HYPERSEARCH, SCHEDULER

SHELLS = [path for path in ("/bin/sh", *map(shutil.which, ("bash", "zsh"))) if path]
ALPHABET = "'\"\\$`!*~#:{}%=,[]()<>;&|?^ \t\n\r-+/.@ax1é€\udcff\udc81"
NASTY = [
    "",
    "a b; rm -rf x",
    "$(touch canary)",
    "`touch canary`",
    "; touch canary #",
    "\n touch canary\n",
    "'; touch canary; '",
    '"; touch canary; "',
    "\\'; touch canary #",
    "); touch canary; (",
    "`; touch canary; `",
    "-n",
    "--",
    "#",
    "#: gpus=2",
    "# note",
    "~",
    "*",
    "!!",
    "$FOO",
    "${FOO}",
    "{a}",
    "{}",
    "%s%n",
    "\\",
    "\udcff\udc80",
    "𝄞\u2028\x85",
]
VALUES = st.sampled_from(NASTY) | st.text(ALPHABET, max_size=12)


def lines_of(pattern: str, *, lines_end: bool = False, **values: str | Sequence[str]) -> list[str]:
    words = {
        name: WrittenValues((given,) if isinstance(given, str) else tuple(given), True)
        for name, given in values.items()
    }
    return list(Sweeps([Sweep(pattern, words, seed=1, sampling_mode=IN_ORDER)], lines_end=lines_end).lines())


def run(shell: str, lines: Sequence[str]) -> list[bytes]:
    """What `p` was given in all of the lines: each time the number of arguments, and these."""
    script = "\n".join(['FOO=foo; p() { printf \'%s\\0\' "$#" "$@" >&3; }', *lines, "exit 0"])
    if shell.endswith("zsh"):
        script = "setopt no_equals\n" + script
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "script").write_bytes(script.encode(errors="surrogateescape"))
        done = subprocess.run(
            [shell, "-c", '"$0" ./script 3>got', shell], cwd=directory, capture_output=True, check=True
        )
        assert not Path(directory, "canary").exists(), lines
        assert (done.returncode, done.stderr) == (0, b""), lines
        return Path(directory, "got").read_bytes().split(b"\0")[:-1]


class Part(NamedTuple):
    """A piece of a word: how it is written, with `@` for the placeholder, and what it means."""

    written: str
    means: str
    is_call: bool = False  # the value goes to another call of `p`, and the word gets nothing


TEXTS = [("--lr=", "--lr="), ("a/", "a/"), ("x#", "x#"), ("${{FOO}}", "foo"), (r"\ ", " "), (r"\\", "\\"), ("é", "é")]
TEXTS += [("'{{print $1}}'", "{print $1}"), ('"it\'s $FOO {{}}"', "it's foo {}"), (r"\$-", "$-"), ("x:", "x:")]
PARTS = [Part("@", "@"), Part("@", "@"), *(Part(*text) for text in TEXTS)]
PARTS += [Part("'@'", "@"), Part("' \"$FOO\\ @ # \\'", ' "$FOO\\ @ # \\'), Part("'${{@}}'", "${@}"), Part("'$@'", "$@")]
PARTS += [Part('"@"', "@"), Part('"\' $FOO @ \\$#"', "' foo @ $#"), Part('"a\\\\@{{"', "a\\@{")]
PARTS += [Part("\"$(printf '%s.' @)\"", "@."), Part('"$(printf \'%s.\' "@")"', "@.")]
PARTS += [Part("\"$(printf '%s.' '@' )\"", "@."), Part('" $(printf %s "$(printf %s. x@)" | cat)"', " x@.")]
PARTS += [Part('""$(p @)', "@", True), Part('"$(p x"@")"', "x@", True)]
FLAGS = [
    ("{--flag NAME}", ["--flag", "@"]),
    ("{--flag=NAME}", ["--flag=@"]),
    ("{k.y=NAME}", ["k.y=@"]),
    ("{?NAME}", ["@"]),
]
WORDS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3) | st.sampled_from(FLAGS)


@st.composite
def commands(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """A line, and what `p` must be given in it."""
    values: dict[str, str] = {}

    def put(written: str, sign: str) -> tuple[str, str]:
        if sign not in written:
            return written, ""
        name = f"v{len(values)}"
        values[name] = draw(VALUES)
        return written.replace(sign, f"{{{name}}}" if sign == "@" else name), values[name]

    pattern, expected, inner = "p", [], []
    for word in draw(st.lists(WORDS, min_size=1, max_size=4)):
        if isinstance(word, tuple):
            written, value = put(word[0], "NAME")
            expected += [text.replace("@", value) for text in word[1]]
        else:
            written, whole = "", ""
            for part in word:
                piece, value = put(part.written, "@")
                written += piece
                meant = part.means.replace("@", value)
                whole += "" if part.is_call else meant
                inner += ["1", meant] if part.is_call else []
            expected.append(whole)
        pattern += f" {written}"
    (line,) = lines_of(pattern, **values)
    return line, [text.encode(errors="surrogateescape") for text in [*inner, str(len(expected)), *expected]]


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(lines=st.lists(commands(), min_size=1, max_size=20))
def test_the_program_gets_just_the_values_wherever_they_stand(shell, lines) -> None:
    assert run(shell, [line for line, _ in lines]) == [word for _, expected in lines for word in expected]


@settings(max_examples=200, deadline=None)
@given(command=commands())
def test_no_value_becomes_an_option_or_a_comment_for_the_scheduler(command) -> None:
    data = command[0].encode(errors="surrogateescape")
    assert split_options(data) == (data, {})


def test_hostile_values_come_through_the_two_commands(tmp_path: Path) -> None:
    pattern = "printf '%s\\0' {a} x{a} '{a}' \"{a}\" \"$(printf %s. {a})\" >> got"
    args = [pattern, "--sampling-mode", "grid", "--null", "-p", *(f"a={value}" for value in NASTY)]
    made = subprocess.run([*HYPERSEARCH, *args], capture_output=True, check=True)
    command = [*SCHEDULER, "--gpus", "0", "-0", "--ignore-occupancy"]
    subprocess.run(command, input=made.stdout, capture_output=True, check=True, cwd=tmp_path)
    expected = [text for value in NASTY for text in (value, f"x{value}", value, value, f"{value}.")]
    assert (tmp_path / "got").read_bytes().decode(errors="surrogateescape").split("\0")[:-1] == expected
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    ("pattern", "value", "sentence"),
    [
        ("p `echo {a}`", "x y", "quotes do not work there; put the placeholder outside of ` `, ${ }, $(( ))"),
        ("p ${{X:-{a}}}", "x y", "quotes do not work there"),
        ("p \"${{X:-'{a}'}}\"", "x y", "quotes do not work there"),
        ('p "${{X:-"{a}"}}"', "<(", "quotes do not work there"),
        ("p $(( {a} + 1 ))", "x[$(touch canary)]", "quotes do not work there"),
        ("cat <<E\n{a}\nE", "E", "in a here-document it might be read as its end"),
        ("cat <<E\n# {a}\nE", "$(touch canary)", "quotes do not work there"),
        ("p $'{a}'", "it's", "quotes do not work there"),
        ("p $(( {a} + 1 ))", "", "{a} cannot take the value '' of a"),
        ("p \\{a}", "x", "the backslash before {a} would take the first character of its values"),
        ('p "\\\\\\{a}"', "x", "the backslash before {a} would take the first character of its values"),
        ("p ${a}", "x", "${a} would be a shell variable; write ${{a}} if that is intended"),
        ('p "${a}"', "x", "${a} would be a shell variable"),
        ("p '{a}", "x", "the pattern opens ' and does not close it"),
        ('p "$(echo {a})', "x", 'the pattern opens " and does not close it'),
        ("p {a} \\", "x", "the pattern ends in a backslash, which would join each line with the next"),
        ("p {a!s}", "x\\", "ends in a backslash, which would escape what follows"),
        ("p #: name={a}", "x y", "after #: a value must be a single word without spaces"),
        ("p #: name={a}", "x\ntouch canary", "after #: a value must be a single word without spaces"),
        ("p {a}", "\0", "a value of a contains a NUL byte, which no command can hold"),
    ],
)
def test_where_no_quoting_helps_a_value_that_needs_it_is_refused(pattern, value, sentence) -> None:
    with pytest.raises(UserError) as refused:
        lines_of(pattern, a=value)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("part", ["pattern", "value"])
def test_a_newline_is_refused_where_it_would_end_the_line(part) -> None:
    pattern, value = ("p {a}\np", "x") if part == "pattern" else ("p {a}", "x\ntouch canary")
    with pytest.raises(UserError, match="contains a newline, which ends a command; add --null here and for"):
        lines_of(pattern, lines_end=True, a=value)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("pattern", "value", "words"),
    [
        ("p `echo {a}`", "x-1.5", ["x-1.5"]),
        ("p ${{X:-{a}}}", "x/y", ["x/y"]),
        ("p $(( {a} + 1 ))", "41", ["42"]),
        ("p \"$(cat <<'E'\n-{a}-\nE\n)\"", "x=1", ["-x=1-"]),
        ("p '${a}' '\\{a}'", "it's $FOO", ["$it's $FOO", "\\it's $FOO"]),
        ("p \\\\{a}", "x y", ["\\x y"]),
        ("p {a!s}", "x  'y z' $FOO", ["x", "y z", "foo"]),
        ('p "{a!s}"', "$FOO", ["foo"]),
        ("p {a}#x x#{a} # {a}", "#", ["##x", "x##"]),
        ("p {a} # it's {a}", "it's", ["it's"]),
        ("p x \\\n{a}", "#: gpus=2", ["x", "#: gpus=2"]),
        ("p x; # a note\np {a}", "'\"", ["x", "1", "'\""]),
        ("p {a:>4} '{a:>4}'", "x", ["   x", "   x"]),
    ],
)
def test_special_places(shell, pattern, value, words) -> None:
    (line,) = lines_of(pattern, a=value)
    got = run(shell, [line])
    assert [word.decode() for word in got[1:]] == words


def hard(reason: str, pattern: str, value: str, *words: str):
    return pytest.param(pattern, value, list(words), id=f"{pattern} ({reason})")


@pytest.mark.parametrize(
    ("pattern", "value", "words"),
    [
        hard("a newline ends a note", "p # {a}", "\ntouch canary"),
        hard("a backtick ends a note in backticks", "p `: # {a}", "`; touch canary #"),
        hard("backticks take a layer of backslashes away", 'p x`echo "{a}"`', "$(touch canary)", "x"),
        hard("arithmetic expands what is in its quotes", "p $(( '{a}' ))", "x[$(touch canary)]"),
        hard("a value that is the delimiter ends the text", "cat <<E\n{a}\ntouch canary\nE", "E"),
        hard("case in $( ) is not followed", 'p "$(case 1 in 1) echo {a};; esac)"', "; touch canary", "; touch canary"),
        hard("a flag may open a quote", "p {-' a} x", "; touch canary #"),
        hard("a raw value may open a quote", "p {r!s} {a}", "; touch canary #"),
        hard("dash knows no $' '", "p $'a\\'' {a}", "; touch canary #"),
        hard("it makes another variable's name", "p $FOO{a}", "1", "foo1"),
        hard("it makes another variable's name", 'p "$FOO{a}"', "bar", "foobar"),
        hard("a number before > is a file descriptor", "p x {a}> log", "2", "x", "2"),
        hard("a word with = is an assignment", "{a} 2> log; p $FOO", "FOO=x", "foo"),
        hard("so it is behind a word of the shell", "if true; then {a} p x; fi 2> log", "A=1"),
        hard("so it is behind an assignment", "B=1 {a} p x 2> log", "A=1"),
        hard("so it is in a part of the word", "x{a} p x 2> log", "A=1"),
        hard("two parts make a word of the shell", "{a}i p x 2> log", "f"),
        hard("arithmetic of bash", "p $[{a}+1]", "0$(touch canary)"),
        hard("a subscript is arithmetic", "p x; a[{a}]=1", "0$(touch canary)", "x"),
        hard("a quote in an expansion", 'p "${{y#\'}}" {a}', '$(touch canary)}";#'),
        hard("a number in braces", "p x{{1..{a}}}", "3", "x{1..3}"),
    ],
)
def test_places_where_a_value_is_not_handed_over(pattern, value, words) -> None:
    try:
        (line,) = lines_of(pattern, a=value, **({"r": "it's"} if "{r!s}" in pattern else {}))
    except UserError:
        return
    got = [run(shell, [line])[1:] for shell in SHELLS]
    assert [word.decode() for word in got[0]] == words
