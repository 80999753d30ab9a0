"""What a shell makes of the values in a command."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from tests.conftest import HYPERSEARCH, SCHEDULER, needs
from tests.support.nasty_values import NASTY, commands, lines_of

SHELLS = ("/bin/sh", "bash", "zsh")


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


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(lines=st.lists(commands(), min_size=1, max_size=20))
def test_the_program_gets_just_the_values_wherever_they_stand(shell, lines) -> None:
    needs(shell)
    assert run(shell, [line for line, _ in lines]) == [word for _, expected in lines for word in expected]


def test_hostile_values_come_through_the_two_commands(tmp_path: Path) -> None:
    pattern = "printf '%s\\0' {a} x{a} '{a}' \"{a}\" \"$(printf %s. {a})\" >> got"
    args = [pattern, "--sampling-mode", "grid", "--null", "-p", *(f"a={value}" for value in NASTY)]
    made = subprocess.run([*HYPERSEARCH, *args], capture_output=True, check=True)
    command = [*SCHEDULER, "--gpus", "0", "-0", "--ignore-occupancy"]
    subprocess.run(command, input=made.stdout, capture_output=True, check=True, cwd=tmp_path)
    expected = [text for value in NASTY for text in (value, f"x{value}", value, value, f"{value}.")]
    assert (tmp_path / "got").read_bytes().decode(errors="surrogateescape").split("\0")[:-1] == expected
    assert not (tmp_path / "canary").exists()


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
    needs(shell)
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
    got = [run(shell, [line])[1:] for shell in SHELLS if shutil.which(shell)]
    assert [word.decode() for word in got[0]] == words
