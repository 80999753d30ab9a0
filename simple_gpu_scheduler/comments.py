"""Where a shell would see a comment: the quoting rules of sh, bash and zsh, and no more of their grammar.

It knows nothing of options. Where the text does not end in the open (a quote or a bracket is missing) it finds no
comment behind that point, so that nothing is ever taken out of a string. The one thing it cannot follow is a `case`
with unbalanced patterns inside `$( )`; a pattern written `(a)` it can.
"""

import re

_ENDS_WORD = b" \t\n;&|()<>"
_HEREDOC = re.compile(rb"<<(-?)[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|()<>'\"\\])+)")
_ANSI_STRING = re.compile(rb"\$'(?:[^'\\]|\\.)*'?", re.DOTALL)

# Of what may be open (a `"` string, `${`, `$((`, `$(`, `(`, a backtick), those in which words and so comments are met.
_HOLDS_COMMANDS = (b"$(", b"(", b"`")


class _Scan:
    """One pass over one text. `open` is the stack of what has been opened and not yet closed."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0
        self.open: list[bytes] = []
        self.word_begins = True  # would a word begin at `at`, and so may a comment
        self.word_began = True  # the same of the character that is being looked at
        self.heredocs: list[tuple[bool, bytes]] = []
        self.comments: list[int] = []

    def run(self) -> list[int]:
        text, size = self.text, len(self.text)
        while self.at < size:
            char = text[self.at : self.at + 1]
            self.word_began = self.word_begins
            self.word_begins = char in _ENDS_WORD and self._in_commands()
            _STEPS.get(char, _Scan.plain)(self)
        return self.comments

    def plain(self) -> None:
        self.at += 1

    def _in_commands(self) -> bool:
        return not self.open or self.open[-1] in _HOLDS_COMMANDS

    def _in_string(self) -> bool:
        """Whether a double quote is open around this point, with no command substitution in between."""
        for opened in reversed(self.open):
            if opened in _HOLDS_COMMANDS:
                return False
            if opened == b'"':
                return True
        return False

    def _push(self, opened: bytes) -> None:
        self.open.append(opened)
        self.at += len(opened)

    def _close(self, width: int = 1) -> None:
        self.open.pop()
        self.at += width
        self.word_begins = False

    def backslash(self) -> None:
        self.at += 2

    def single_quote(self) -> None:
        if self._in_string():
            self.at += 1
            return
        end = self.text.find(b"'", self.at + 1)
        self.at = len(self.text) if end < 0 else end + 1
        if end < 0:
            self.open.append(b"'")

    def double_quote(self) -> None:
        if self.open and self.open[-1] == b'"':
            self._close()
        else:
            self._push(b'"')

    def dollar(self) -> None:
        rest = self.text[self.at : self.at + 3]
        if rest[:2] == b"$'" and not self._in_string():
            match = _ANSI_STRING.match(self.text, self.at)
            self.at = match.end() if match else self.at + 2
        elif rest == b"$((":
            self._push(rest)
        elif rest[:2] in (b"$(", b"${"):
            self._push(rest[:2])
            self.word_begins = rest[:2] == b"$("
        else:
            self.at += 2 if rest[1:2] in (b"#", b"$") else 1

    def backtick(self) -> None:
        if b"`" in self.open:
            while self.open[-1] != b"`":
                self.open.pop()
            self._close()
        else:
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
        if opened == b"$((" and self.text[self.at : self.at + 2] == b"))":
            self._close(2)
        elif opened in (b"$(", b"((", b"$(("):
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
        match = _HEREDOC.match(self.text, self.at) if self._in_commands() else None
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
        ends = [self.text.find(b"\n", self.at)]
        if b"`" in self.open:  # a backtick ends its command wherever it stands
            ends.append(self.text.find(b"`", self.at))
        self.at = min((end for end in ends if end >= 0), default=len(self.text))


_STEPS = {
    b"\\": _Scan.backslash,
    b"'": _Scan.single_quote,
    b'"': _Scan.double_quote,
    b"$": _Scan.dollar,
    b"`": _Scan.backtick,
    b"(": _Scan.bracket,
    b")": _Scan.close_bracket,
    b"}": _Scan.close_brace,
    b"<": _Scan.less,
    b"\n": _Scan.newline,
    b"#": _Scan.hash,
}


def find_comments(text: bytes) -> list[int]:
    """Where the comments begin that stand in the open: in no quote, substitution, bracket or here-document."""
    return _Scan(text).run() if b"#" in text else []
