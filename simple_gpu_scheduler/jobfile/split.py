"""Bytes -> logical lines, as they arrive. It knows how lines end and continue, not what they mean."""

from simple_gpu_scheduler.base.values import NamedTuple

from .parse import LONGEST_LINE as _LONGEST_LINE
from .shell_comments import CommentScanner

_TAIL = 64
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The comment that `submit` writes before its lines; nobody wrote it, so it has no line number.
SUBMITTED = b"# submit %s\n"
_PREFIX = SUBMITTED.partition(b"%")[0]
_HEX, _DIGITS = b"0123456789abcdef", 16


class Line(NamedTuple):
    """A logical line and the number of its first physical one. Bytes beyond `_LONGEST_LINE` are dropped."""

    number: int
    text: bytes
    size: int


def count_lines(data: bytes) -> int:
    """How many physical lines end in these bytes, which are from the start of a stream."""
    lines = data.count(b"\n")
    if _PREFIX in data:
        lines -= sum(map(_is_submitted, data.split(b"\n")[:-1]))
    return lines


def _is_submitted(line: bytes) -> bool:
    text = line.removeprefix(_PREFIX)
    return len(line) - len(text) == len(_PREFIX) and len(text) == _DIGITS and not text.strip(_HEX)


class LineCutter:
    """Cuts bytes, as they come, into logical lines."""

    def __init__(self, *, by_null: bool = False, line: int = 1, at_start: bool = True) -> None:
        self._end = b"\0" if by_null else b"\n"
        self._partial = bytearray()
        self._partial_size = 0
        self._joined: Joined | None = None
        self._number = line
        self._at_start = at_start
        self._fed = self._at = self._whole = self._taken = 0

    def feed(self, data: bytes) -> list[Line]:
        """The lines that this much more input completes."""
        self._fed += len(data)
        pieces = data.split(self._end)
        if len(pieces) == 1:
            self._keep(pieces[0])
            return []
        last = pieces.pop()
        lines: list[Line] = []
        if self._partial_size:
            self._keep(pieces[0])
            lines += self._complete(bytes(self._partial), self._partial_size)
            del pieces[0]
        for piece in pieces:
            lines += self._complete(piece, len(piece))
        self._partial, self._partial_size = bytearray(last), len(last)
        return lines

    def finish(self) -> list[Line]:
        """The last line, when the input ended without ending it."""
        lines = self._complete(bytes(self._partial), self._partial_size) if self._partial_size else []
        self._partial, self._partial_size = bytearray(), 0
        self._at = self._whole = self._fed
        if self._joined:  # a backslash with nothing after it to continue
            lines.append(self._joined.line())
            self._joined = None
        return lines

    @property
    def unfinished(self) -> bytes:
        """The last line so far, which has no end; empty if there is none."""
        text = bytes(self._partial).removeprefix(_BYTE_ORDER_MARK if self._at_start else b"")
        return self._joined.line().text + b"\n" + text if self._joined else text

    @property
    def number(self) -> int:
        """The number of the next line, or of the first physical line of one that continues."""
        return self._joined.number if self._joined else self._number

    def take_whole(self) -> int:
        """How many bytes the lines returned since the last call took."""
        taken, self._taken = self._taken, self._whole
        return self._whole - taken

    def _keep(self, piece: bytes) -> None:
        """Add to the unfinished line. Of one that is too long, keep the start, and the end, which may continue it."""
        self._partial += piece
        self._partial_size += len(piece)
        if len(self._partial) > _LONGEST_LINE:
            del self._partial[_LONGEST_LINE - _TAIL : -_TAIL]

    def _complete(self, text: bytes, size: int) -> list[Line]:
        number = self._number
        self._at += size + 1
        if self._at_start and text.startswith(_BYTE_ORDER_MARK):
            text, size = text[len(_BYTE_ORDER_MARK) :], size - len(_BYTE_ORDER_MARK)
        self._at_start = False
        lines = self._lines(number, text, size)
        if lines:
            self._whole = self._at
        return lines

    def _lines(self, number: int, text: bytes, size: int) -> list[Line]:
        if self._end == b"\0":
            self._number += text.count(b"\n")
            return [Line(number, text, size)]
        is_submitted = text.startswith(b"#") and _is_submitted(text)
        self._number += not is_submitted
        if is_submitted and self._joined:  # another writer began, so nothing can continue this line any more
            line, self._joined = self._joined.line(), None
            return [line]
        if text.endswith(b"\r"):
            text, size = text[:-1], size - 1
        if self._joined is None:
            if not text.endswith(b"\\"):
                return [Line(number, text, size)]
            self._joined = Joined(number)
        self._joined.add(text, size)
        if self._joined.continues(text):
            return []
        line = self._joined.line()
        self._joined = None
        return [line]


class Joined:
    """The physical lines so far of a logical line that continues."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._text = bytearray()
        self._size = 0
        self._scanner = CommentScanner()

    def add(self, text: bytes, size: int) -> None:
        """The next of them."""
        separator = b"\n" if self._size else b""
        self._size += size + len(separator)
        if len(self._text) < _LONGEST_LINE:
            self._text += separator + text
            self._scanner.feed(separator + text)

    def continues(self, text: bytes) -> bool:
        """Whether a shell reads on after `text`, the last line: it ends in an unescaped backslash outside a comment."""
        backslashes = len(text) - len(text.rstrip(b"\\"))
        return backslashes % 2 == 1 and not self._scanner.ends_in_comment

    def line(self) -> Line:
        """All of it."""
        return Line(self.number, bytes(self._text[:_LONGEST_LINE]), self._size)
