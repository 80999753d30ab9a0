"""Which lines of a followed file were read before, so that editing the file runs no line twice. Pure.

The rule: a line that is appended is run. If the file is changed in any other way, its lines are compared with those
that it held when it was last read: a line that it still holds is not run again, every other line is.

Lines are compared as they were written, options included, wherever they are; a line that the file held twice may stay
twice. The old lines are forgotten when the change is settled, since an editor may write a file in pieces. It does not
know how a file changes, nor what a line means.
"""

import hashlib
from array import array

from simple_gpu_scheduler.base.values import TYPE_CHECKING, Iterable

if TYPE_CHECKING:
    from simple_gpu_scheduler.journal.run_state import KnownLines

_BYTES = 8


class HeldLines:
    """The lines of one followed file: a digest of each, and the number of its job.

    After a change it is pending: `before` has the old lines that were not met again so far. `unfinished` is one that
    was met as the last line, without its end: the next line either is the same, or it is another.
    """

    def __init__(self, path: str, known: "KnownLines | None" = None) -> None:
        """`known` is what an earlier process read."""
        self.path = path
        self._salt = path.encode("utf-8", "surrogateescape") + b"\0"
        # A million lines are to need 16 MB and not 200.
        self._digests = array("Q")
        self._numbers = array("Q")
        self._before: dict[int, list[int]] = {}
        self._unfinished = known.unfinished if known else None
        self._refused = dict(known.refused) if known else {}
        self.is_pending = bool(known and known.unmarked)
        self.kept = 0
        for digest, number in known.held if known else ():
            self.add(digest, number)
        for digest, number in known.unmarked if known else ():
            self._before.setdefault(int(digest, 16), []).append(number)

    def digest(self, text: bytes) -> str:
        """What a line is known by; the same text in another file has another digest."""
        return hashlib.blake2b(self._salt + text.strip(), digest_size=_BYTES).hexdigest()

    def take(self, digest: str) -> int:
        """The number of this line if the file held it before the change; it holds it now, and is not asked for again.

        0 if it is new.
        """
        (unfinished, number), self._unfinished = self._unfinished or ("", 0), None
        if digest == unfinished:
            self.add(digest, number)
            return number
        numbers = self._before.get(int(digest, 16)) if self.is_pending else None
        if not numbers:
            return 0
        self.add(digest, numbers.pop(0))
        self.kept += 1
        return self._numbers[-1]

    def add(self, digest: str, number: int, problem: str = "") -> None:
        """The file holds this line, which is the job of this number, or was refused because of a problem."""
        self._digests.append(int(digest, 16))
        self._numbers.append(number)
        if problem:
            self._refused[number] = problem

    def problem_of(self, number: int) -> str:
        """Why a line was refused, which other lines may have caused; empty if it was not."""
        return self._refused.get(number, "")

    def forget_last(self) -> None:
        """The line that was taken last is read anew."""
        self._digests.pop()
        self._refused.pop(self._numbers.pop(), None)
        self.kept -= 1

    def restart(self) -> None:
        """The file has other content, from its start."""
        for digest, number in zip(self._digests, self._numbers, strict=True):
            self._before.setdefault(digest, []).append(number)
        if self._unfinished:
            self._before.setdefault(int(self._unfinished[0], 16), []).append(self._unfinished[1])
        self._unfinished = None
        self._digests, self._numbers = array("Q"), array("Q")
        self.is_pending, self.kept = True, 0

    def keep_all(self) -> None:
        """Another file took its place, which holds all the lines."""
        self.is_pending, self.kept = True, len(self._numbers)

    def meet_unfinished(self, digest: str) -> None:
        """The change is over, and the last line has this digest and no end yet."""
        numbers = self._before.get(int(digest, 16))
        if numbers:
            self._unfinished = digest, numbers.pop(0)
            self.kept += 1

    @property
    def unfinished(self) -> int:
        """The number of the line without an end that the file held before; 0 if there is none."""
        return self._unfinished[1] if self._unfinished else 0

    def settle(self) -> list[int]:
        """The change is over: forget the old lines. The numbers of all lines held, as the ends of ranges."""
        self.is_pending, self._before = False, {}
        return ranges([*self._numbers, self.unfinished] if self.unfinished else self._numbers)


def ranges(numbers: Iterable[int]) -> list[int]:
    """Numbers as the first and the last of each range: 1, 2, 3, 7 is [1, 3, 7, 7]."""
    ends: list[int] = []
    for number in sorted(numbers):
        if ends and number == ends[-1] + 1:
            ends[-1] = number
        else:
            ends += [number, number]
    return ends
