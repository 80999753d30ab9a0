"""Finds the comments a shell would see, by the quoting rules of sh, bash and zsh and nothing else of their grammar.

It knows nothing of options. If a quote or bracket is never closed, it finds no comment after it, so that nothing is
ever taken out of a string. The one thing it cannot follow is a `case` with unbalanced patterns inside `$( )`; it can
follow patterns written `(a)`.
"""

from simple_gpu_scheduler.base.stdlib import re

_ENDS_WORD = b" \t\n;&|()<>"
# Compiled when first needed; few jobs have one.
_HEREDOC = rb"<<(-?)[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|()<>'\"\\])+)"
_ANSI_STRING = rb"(?:[^'\\]|\\.)*"

# Of what may be open (a `"` string, `${`, `$((`, `$(`, `(`, a backtick), those in which words and so comments are met.
_HOLDS_COMMANDS = (b"$(", b"(", b"`")
_CLOSED_BY_QUOTE = (b"'", b"$'")


class CommentScanner:
    """One pass over a text, which may come in parts: each part is scanned once, however long the text."""

    def __init__(self) -> None:
        self.text = b""
        self.at = 0
        self.open: list[bytes] = []  # what is open
        self.in_string: list[bool] = [False]  # the same, deeper by one: is a `"` open around it, in the same command
        self.backtick = -1  # at which depth one is open
        self.word_begins = True  # would a word begin at `at`, and so may a comment
        self.word_began = True  # the same of the character that is being looked at
        self.heredocs: list[tuple[bool, bytes]] = []
        self.comments: list[int] = []  # where comments start that are inside nothing
        self.ends_in_comment = False
        self.is_unsure = False  # whether shells disagree on a quote that was met

    def feed(self, text: bytes) -> "CommentScanner":
        """Scan this much more."""
        self.text = self.text + text if self.text else text
        text, size = self.text, len(self.text)
        while self.at < size:
            if self.open and self.open[-1] in _CLOSED_BY_QUOTE:
                self._skip_string()
                continue
            char = text[self.at : self.at + 1]
            self.word_began = self.word_begins
            self.word_begins = char in _ENDS_WORD and self._in_commands()
            _STEPS.get(char, CommentScanner.plain)(self)
        return self

    def plain(self) -> None:
        self.at += 1

    def _in_commands(self) -> bool:
        return not self.open or self.open[-1] in _HOLDS_COMMANDS

    def _push(self, opened: bytes) -> None:
        self.open.append(opened)
        self.in_string.append(opened == b'"' or (self.in_string[-1] and opened not in _HOLDS_COMMANDS))
        self.at += len(opened)

    def _pop(self) -> None:
        self.open.pop()
        self.in_string.pop()

    def _close(self) -> None:
        self._pop()
        self.at += 1
        self.word_begins = False

    def backslash(self) -> None:
        if self.text[self.at + 1 : self.at + 2] in (b"\n", b""):  # the line continues as if the two were not there
            self.word_begins = self.word_began
        self.at += 2

    def single_quote(self) -> None:
        if self.in_string[-1]:
            self.is_unsure |= b"${" in self.open
            self.at += 1
            return
        self._push(b"'")

    def _skip_string(self) -> None:
        """To the end of a string in single quotes, or as far as the text goes."""
        if self.open[-1] == b"'":
            end = self.text.find(b"'", self.at)
            end = len(self.text) if end < 0 else end
        else:
            match = re.compile(_ANSI_STRING, re.DOTALL).match(self.text, self.at)
            end = match.end() if match else self.at
        self.at = end
        if self.text[end : end + 1] == b"'":
            self._close()
        else:  # nothing more, or a backslash at the very end
            self.at = len(self.text)

    def double_quote(self) -> None:
        if self.open and self.open[-1] == b'"':
            self._close()
        else:
            self._push(b'"')

    def dollar(self) -> None:
        rest = self.text[self.at : self.at + 3]
        if rest[:2] == b"$'" and not self.in_string[-1]:
            self._push(rest[:2])
        elif rest == b"$((":
            self._push(rest)
        elif rest[:2] in (b"$(", b"${"):
            self._push(rest[:2])
            self.word_begins = rest[:2] == b"$("
        else:
            self.at += 2 if rest[1:2] in (b"#", b"$") else 1

    def back_quote(self) -> None:
        if self.backtick >= 0:
            while len(self.open) > self.backtick:
                self._pop()
            self.backtick = -1
            self.at += 1
            self.word_begins = False
        else:
            self.backtick = len(self.open)
            self._push(b"`")
            self.word_begins = True

    def bracket(self) -> None:
        if self._in_commands() or self.open[-1] in (b"$((", b"(("):
            self._push(b"(" if self._in_commands() else b"((")
            self.at -= self.open[-1] == b"(("
        else:
            self.at += 1

    def close_bracket(self) -> None:
        opened = self.open[-1] if self.open else b""
        if opened == b"$((":  # another `)` ends it, and if none follows it was a subshell in a substitution
            self._pop()
            self._push(b"$(")
            self.at -= 1
            self.word_begins = True
        elif opened in (b"$(", b"(("):
            self._close()
        elif opened == b"(":
            self._close()
            self.word_begins = True
        else:
            self.at += 1

    def close_brace(self) -> None:
        if self.open and self.open[-1] == b"${":
            self._close()
        else:
            self.at += 1

    def less(self) -> None:
        match = re.compile(_HEREDOC).match(self.text, self.at) if self._in_commands() else None
        if self.text[self.at : self.at + 3] == b"<<<":
            self.at += 3
        elif match:
            word = re.sub(rb"\\(.)|['\"]", rb"\1", match[2])
            self.heredocs.append((bool(match[1]), word))
            self.at = match.end()
            self.word_begins = False
        else:
            self.at += 1

    def newline(self) -> None:
        self.at += 1
        if self._in_commands():
            for strips_tabs, word in self.heredocs:
                self._skip_heredoc(strips_tabs, word)
            self.heredocs.clear()

    def _skip_heredoc(self, strips_tabs: bool, word: bytes) -> None:
        while self.at < len(self.text):
            end = self.text.find(b"\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end]
            self.at = end + 1
            if (line.lstrip(b"\t") if strips_tabs else line) == word:
                return

    def hash(self) -> None:
        if not (self.word_began and self._in_commands()):
            self.at += 1
            return
        if not self.open:
            self.comments.append(self.at)
        end = self.text.find(b"\n", self.at)
        end = len(self.text) if end < 0 else end
        if self.backtick >= 0:  # a backtick ends its command even in a comment
            quote = self.text.find(b"`", self.at, end)
            end = end if quote < 0 else quote
        self.ends_in_comment = end == len(self.text)
        self.at = end


_STEPS = {
    b"\\": CommentScanner.backslash,
    b"'": CommentScanner.single_quote,
    b'"': CommentScanner.double_quote,
    b"$": CommentScanner.dollar,
    b"`": CommentScanner.back_quote,
    b"(": CommentScanner.bracket,
    b")": CommentScanner.close_bracket,
    b"}": CommentScanner.close_brace,
    b"<": CommentScanner.less,
    b"\n": CommentScanner.newline,
    b"#": CommentScanner.hash,
}


def find_comments(text: bytes) -> list[int]:
    """Where comments start outside of any quote, substitution, bracket or here-document."""
    return CommentScanner().feed(text).comments if b"#" in text else []
