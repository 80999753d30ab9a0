"""Values that a shell could take for something else, and commands with them."""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from simple_gpu_scheduler.hypersearch.commands import Sweeps
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, Sweep, WrittenValues

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
