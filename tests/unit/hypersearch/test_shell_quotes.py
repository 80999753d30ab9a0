"""Values reach the program as they are, wherever in the pattern they stand, and never become commands."""

import pytest
from hypothesis import given, settings

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.jobfile.parse import split_options
from tests.support.nasty_values import commands, lines_of


@settings(max_examples=200, deadline=None)
@given(command=commands())
def test_no_value_becomes_an_option_or_a_comment_for_the_scheduler(command) -> None:
    data = command[0].encode(errors="surrogateescape")
    assert split_options(data) == (data, {})


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
