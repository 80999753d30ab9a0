"""Which lines of a changed file are new: by the rule, for any changes."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.inputs.held_lines import HeldLines, ranges
from simple_gpu_scheduler.journal.run_state import KnownLines

LINES = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=6)


class Follower:
    """Reads a file by the rule; what it ran, and what a journal would know."""

    def __init__(self) -> None:
        self.held = HeldLines("/q.txt")
        self.ran: list[bytes] = []
        self._lines: list[tuple[str, int]] = []
        self._holds: list[int] | None = None

    def read(self, lines: list[bytes]) -> None:
        for text in lines:
            digest = self.held.digest(text)
            if not self.held.take(digest):
                self.ran.append(text)
                self.held.add(digest, len(self.ran))
                self._lines.append((digest, len(self.ran)))

    def change(self, lines: list[bytes], *, is_killed: bool) -> None:
        """The file has these lines now; with `is_killed` it was changed while nobody followed it."""
        if is_killed:
            self.held = HeldLines("/q.txt", self._known())
        self.held.restart()
        self.read(lines)
        holds = self.held.settle()
        numbers = [
            number for pair in zip(holds[::2], holds[1::2], strict=True) for number in range(pair[0], pair[1] + 1)
        ]
        self._lines = [line for line in self._lines if line[1] in numbers]

    def _known(self) -> KnownLines:
        middle = len(self._lines) // 2  # those after the last mark are read again
        return KnownLines(self._lines[:middle], self._lines[middle:])


@given(first=LINES, changes=st.lists(st.tuples(LINES, LINES, st.booleans()), max_size=5))
def test_what_is_appended_runs_and_of_a_changed_file_what_it_did_not_hold(first, changes) -> None:
    follower = Follower()
    follower.read(first)
    now = Counter(first)
    expected = Counter(first)
    for lines, appended, is_killed in changes:
        follower.change(lines, is_killed=is_killed)
        expected += Counter(lines) - now
        follower.read(appended)
        expected += Counter(appended)
        now = Counter(lines) + Counter(appended)
        assert Counter(follower.ran) == expected


def test_an_editor_that_writes_a_file_in_pieces_runs_nothing_again() -> None:
    follower = Follower()
    follower.read([b"a", b"b"])
    for piece in ([], [b"a"], [b"a", b"b"]):
        follower.held.restart()
        follower.read(piece)
    assert (follower.ran, follower.held.kept) == ([b"a", b"b"], 2)
    follower.held.settle()
    follower.read([b"a"])
    assert follower.ran == [b"a", b"b", b"a"]


def test_lines_after_the_last_mark_are_read_again_once() -> None:
    digest = HeldLines("/q.txt").digest
    held = HeldLines("/q.txt", KnownLines([(digest(b"a"), 1)], [(digest(b"b"), 2)]))
    assert held.is_pending
    assert not held.take(digest(b"a"))
    assert held.take(digest(b" b\n"))
    assert not held.take(digest(b"b"))
    assert held.settle() == [1, 2]
    assert not held.is_pending


def test_a_line_that_was_met_without_its_end_is_known_when_it_ends_and_does_not_run_again() -> None:
    follower = Follower()
    follower.read([b"a", b"b"])
    for _ in range(2):
        follower.held.restart()
        follower.read([b"a"])
        follower.held.meet_unfinished(follower.held.digest(b"b"))
        assert (follower.held.settle(), follower.held.unfinished, follower.held.kept) == ([1, 2], 2, 2)
    follower.read([b"b", b"b"])
    assert follower.ran == [b"a", b"b", b"b"]
    assert follower.held.unfinished == 0


def test_a_line_that_went_on_is_another_and_so_is_one_like_its_beginning() -> None:
    follower = Follower()
    follower.read([b"a"])
    follower.held.restart()
    follower.held.meet_unfinished(follower.held.digest(b"a"))
    follower.held.settle()
    follower.read([b"ab", b"a"])
    assert follower.ran == [b"a", b"ab", b"a"]


def test_a_later_process_knows_the_line_without_an_end() -> None:
    digest = HeldLines("/q.txt").digest
    held = HeldLines("/q.txt", KnownLines([(digest(b"a"), 1)], [], (digest(b"b"), 2)))
    assert (held.is_pending, held.unfinished) == (False, 2)
    assert held.take(digest(b"b"))
    assert not held.take(digest(b"b"))


def test_all_lines_are_kept_in_a_file_that_starts_with_them() -> None:
    follower = Follower()
    follower.read([b"a", b"b", b"a"])
    follower.held.keep_all()
    assert (follower.held.kept, follower.held.is_pending) == (3, True)
    follower.read([b"a"])
    assert follower.ran == [b"a", b"b", b"a", b"a"]


def test_the_same_line_in_two_files_has_two_digests() -> None:
    assert HeldLines("/q.txt").digest(b"a") != HeldLines("/r.txt").digest(b"a")


@given(st.sets(st.integers(1, 30)))
def test_ranges_have_all_numbers_and_no_others(numbers) -> None:
    ends = ranges(numbers)
    pairs = list(zip(ends[::2], ends[1::2], strict=True))
    assert [number for first, last in pairs for number in range(first, last + 1)] == sorted(numbers)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(pairs))
