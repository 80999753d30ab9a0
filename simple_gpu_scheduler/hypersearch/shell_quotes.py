"""Quotes values as the shell needs it where they are: bare, in quotes, after `#:`, or where no quoting works.

It knows what a place means to sh, bash and zsh, not how a pattern is written. If unsure, it accepts only values that
need no quoting, or none. A ValueError says why a value is refused.
"""

from simple_gpu_scheduler.base.stdlib import re, shlex
from simple_gpu_scheduler.base.values import Callable, Mapping
from simple_gpu_scheduler.jobfile.shell_comments import CommentScanner

_SPECIAL_IN_STRING = re.compile(r'([\\"$`])')
_ASSIGNMENT = re.compile(r"\w+(\[.*)?\+?=")
_CASE_IN_SUBSTITUTION = re.compile(rb"\$\(.*\bcase\b", re.DOTALL)
_BEGINS_COMMAND = re.compile(
    r"(?:^|[;&|(\n]|(?:^|[\s;&|(])(?:then|do|else|elif|if|while|until|time|!|\{)\s)\s*(?:\w+=\S*\s+)*(?P<glued>\w*)\Z"
)
_SUBSCRIPT = re.compile(r"(?:^|[\s;&|(])\w*\[[^\]\s]*\Z")
_OPEN_BRACE = re.compile(r"\{\S*\Z")
_RESERVED = re.compile(
    r"if|then|else|elif|fi|do|done|case|esac|while|until|for|in|\{|\}|!|\[\[|time|function|select|coproc|"
    r"repeat|foreach|end|nocorrect|noglob|-"
)
_SOMETHING = re.compile(r"[^\w\t]")
ENDS_ESCAPED = re.compile(r"(?<!\\)(\\\\)*\\\Z")  # in an unescaped backslash
_MARK = b"#:"  # what options start with
_EXPANSIONS = {b"$((", b"((", b"${"}

WORD, COMMAND, PART_OF_COMMAND, REDIRECTED, BRACES = "", "first word", "part of it", "before >", "{"
OPTIONS, COMMENT, HEREDOC, UNSURE = "#:", "#", "<<", "?"
SINGLE, DOUBLE = "'", '"'


def place_behind(text: str, following: str = "") -> str:
    """What a value is to the shell after this text and before the following one."""
    data = text.replace("\\\n", "").encode(errors="surrogateescape")
    scanner = CommentScanner().feed(data)
    if b"<<" in data and b"\n" in data:
        # Perhaps: how its text is read is unknown here. No value may form the word that ends it.
        return UNSURE if _SOMETHING.search(text.rpartition("\n")[2]) else HEREDOC
    # In backticks a backslash means something before quotes do, arithmetic knows no quotes, in ${ } they differ from
    # shell to shell. Nor does dash know $' ', or the scanner the brackets of `case`.
    in_expansion = _EXPANSIONS.intersection(scanner.open) or scanner.open[-2:] == [b"(", b"("]
    if (
        scanner.backtick >= 0
        or scanner.is_unsure
        or b"$[" in data
        or in_expansion
        or _CASE_IN_SUBSTITUTION.search(data)
        or (b"$'" in data and b"\\'" in data)
    ):
        return UNSURE
    if scanner.ends_in_comment:
        last = scanner.comments[-1] if scanner.comments else len(data)
        return OPTIONS if data.startswith(_MARK, last) else COMMENT
    opened = scanner.open[-1].decode() if scanner.open else WORD
    if opened in (SINGLE, DOUBLE):
        return opened
    return _place_of_word(text, following) if opened in (WORD, "$(", "(") else UNSURE


def _place_of_word(text: str, following: str) -> str:
    if _SUBSCRIPT.search(text):
        return UNSURE  # arithmetic, perhaps
    if following[:1] in ("<", ">"):
        return REDIRECTED
    if _OPEN_BRACE.search(text):
        return BRACES
    found = _BEGINS_COMMAND.search(text)
    if not found:
        return WORD
    return PART_OF_COMMAND if found["glued"] or re.match(r"\w", following) else COMMAND


def left_open(text: str) -> str:
    """The quote or bracket that the text leaves open, if any."""
    scanner = CommentScanner().feed(text.encode(errors="surrogateescape"))
    return scanner.open[-1].decode() if scanner.open else ""


def _forced(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def _as_word(value: str) -> str:
    return _forced(value) if value.startswith("=") else shlex.quote(value)  # zsh looks for a program of that name


def _as_command(value: str) -> str:
    return _forced(value) if _RESERVED.fullmatch(value) or _ASSIGNMENT.match(value) else _as_word(value)


def _as_part_of_command(value: str) -> str:
    """With what it is glued to, it could be a word that the shell knows."""
    return _forced(value) if value.isalpha() or "=" in value else _as_word(value)


def _before_redirection(value: str) -> str:
    return _forced(value) if value.isdigit() else _as_word(value)  # a number would be a file descriptor


def _in_braces(value: str) -> str:
    return _forced(value) if "," in value or ".." in value else _as_word(value)  # it would become several words


def _in_single_quotes(value: str) -> str:
    return value.replace("'", "'\\''")


def _in_string(value: str) -> str:
    return _SPECIAL_IN_STRING.sub(r"\\\1", value)


def _in_options(value: str) -> str:
    if not value or not value.isprintable() or any(char.isspace() for char in value):
        raise ValueError("after #: a value must be a single word without spaces")
    return value


def _in_comment(value: str) -> str:
    if "\n" in value:
        raise ValueError("a comment ends with its line")
    return value


def _in_heredoc(_value: str) -> str:
    raise ValueError(
        "in a here-document it might be read as its end; write something before it, such as '- ' or 'lr: '"
    )


def _without_quotes(value: str) -> str:
    if shlex.quote(value) != value:
        raise ValueError("quotes do not work there; put the placeholder outside of ` `, ${ }, $(( )) and the like")
    return value


_QUOTES: Mapping[str, Callable[[str], str]] = {
    WORD: _as_word,
    COMMAND: _as_command,
    PART_OF_COMMAND: _as_part_of_command,
    REDIRECTED: _before_redirection,
    BRACES: _in_braces,
    SINGLE: _in_single_quotes,
    DOUBLE: _in_string,
    OPTIONS: _in_options,
    COMMENT: _in_comment,
    HEREDOC: _in_heredoc,
    UNSURE: _without_quotes,
}
COMMANDS = {COMMAND, PART_OF_COMMAND}
WORDS = {WORD, COMMAND, PART_OF_COMMAND, REDIRECTED, BRACES}


def quoted(value: str, place: str) -> str:
    """The value quoted so that the program gets exactly this value."""
    return _QUOTES[place](value)
