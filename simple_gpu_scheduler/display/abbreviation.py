"""Commands cut to a width so that they can be told apart: what they share is left out first. Pure.

Of a sweep, `python3 train.py --data /data/imagenet --lr 0.1 --epochs 100 --seed 3` becomes `python3 … --lr 0.1 … --seed
3`. It knows nothing of shells, and of options only what their names look like.

Texts that share a beginning diverge at the same place. The words at that place are the ones to show: they are left out
last, and if only they are shown, two different texts still look different, since what precedes them is cut alike.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import accumulate, pairwise

from simple_gpu_scheduler.base.values import NamedTuple

from .cells import cell_len, set_cell_size

_MARK = "…"
_WORD = re.compile(r"[^\s/=]+[\s/=]*|[\s/=]+")
_BETWEEN = " /="
_LONGEST = 4000  # only so much of a text is looked at


class _Cut(NamedTuple):
    """A text in pieces: those that must be seen, and the others in the order in which they are left out."""

    pieces: Sequence[str]
    needed: AbstractSet[int]
    order: Sequence[int]


@lru_cache(maxsize=8)  # the live view asks for the same four times a second
def shorten(texts: tuple[str, ...], widths: tuple[int, ...]) -> Sequence[str]:
    """Each text in its number of cells; what fits is not changed, if that leaves all of them different.

    Different texts look different wherever the widths allow it: always, if they are four cells for each text.
    """
    if all(map(_fits, texts, widths)):
        return texts
    known = tuple(text if len(text) <= _LONGEST else text[:_LONGEST] + _MARK for text in texts)
    if len(set(known)) == 1:
        return [_ends(text, width) for text, width in zip(texts, widths, strict=True)]
    words = _cut_between_words(set(known))
    readable = [_readable(words[text], width) for text, width in zip(known, widths, strict=True)]
    if None not in readable and _are_apart(known, readable):
        return [each or "" for each in readable]
    return _with_letters(known, widths, words)


def in_turn(texts: Collection[str]) -> Mapping[str, Sequence[str]]:
    """Each text in parts: what it shares, what tells it apart, what it shares, and so on; some may be empty.

    For a display that knows its width only later.
    """
    pieces_of = {text: _WORD.findall(text) for text in texts}
    if len(pieces_of) == 1:
        return {text: [text] for text in texts}
    counts = _counts(pieces_of.values())
    partings = _partings(pieces_of)
    return {text: _parts(pieces, partings[text], counts) for text, pieces in pieces_of.items()}


def _parts(pieces: Sequence[str], partings: AbstractSet[int], counts: Mapping[str, int]) -> Sequence[str]:
    telling = {index for index, word in enumerate(_words(pieces)) if index in partings or counts[word] == 1}
    telling |= {index - 1 for index in telling if index and _is_name(pieces[index - 1])}
    parts = [""]
    for index, piece in enumerate(pieces):
        if (index in telling) == len(parts) % 2:
            parts.append("")
        parts[-1] += piece
    return parts


def _with_letters(texts: Sequence[str], widths: Sequence[int], words: Mapping[str, _Cut]) -> Sequence[str]:
    """Where words are too long, or not enough."""
    letters = _cut_between_letters(words)
    mixed = [
        _readable(words[text], width) or _readable(letters[text], width) or _ends(_bare(words[text]), width)
        for text, width in zip(texts, widths, strict=True)
    ]
    shown: Sequence[str]
    for shown in (mixed, *([_bare(cuts[text]) for text in texts] for cuts in (words, letters))):
        if all(map(_fits, shown, widths)) and _are_apart(texts, shown):
            return shown
    return mixed


def _fits(text: str, width: int) -> bool:
    return cell_len(text) <= width


def _are_apart(texts: Sequence[str], shown: Sequence[str | None]) -> bool:
    of: dict[str | None, str] = {}
    return all(of.setdefault(each, text) == text for text, each in zip(texts, shown, strict=True))


def _readable(cut: _Cut, width: int) -> str | None:
    """With as much of it as fits; None if what must be seen does not."""
    shown = _bare(cut)
    if not _fits(shown, width):
        return None
    too_much = sum(map(cell_len, cut.pieces)) - width
    left_out: set[int] = set()
    for index in cut.order:
        if too_much <= 0 and _fits(shown := _without(cut.pieces, left_out), width):
            return shown
        left_out.add(index)
        too_much -= cell_len(cut.pieces[index])
    return _bare(cut)


def _bare(cut: _Cut) -> str:
    return _without(cut.pieces, {*cut.order})


def _without(pieces: Sequence[str], left_out: Collection[int]) -> str:
    """The rest of the pieces, with a mark for each run that is left out."""
    shown: list[str] = []
    run = ""
    for index, piece in enumerate([*pieces, ""]):
        if index in left_out:
            run += piece
            continue
        if run:
            mark = _MARK + (run[-1] if piece and run[-1] in _BETWEEN else "")  # `… --lr`, `…/17.json`
            shown.append(mark if cell_len(mark) < cell_len(run) else run)
            run = ""
        shown.append(piece)
    return "".join(shown)


def _cut_between_words(texts: Collection[str]) -> Mapping[str, _Cut]:
    pieces_of = {text: _WORD.findall(text) for text in texts}
    counts = _counts(pieces_of.values())
    partings = _partings(pieces_of)
    return {text: _cut_words(pieces, partings[text], counts) for text, pieces in pieces_of.items()}


def _counts(texts: Collection[Sequence[str]]) -> Mapping[str, int]:
    """In how many texts each word is."""
    return Counter(word for pieces in texts for word in {*_words(pieces)})


def _words(pieces: Sequence[str]) -> Iterator[str]:
    """The pieces without what is between them; values with the name of their option."""
    before = ""
    for piece in pieces:
        yield before + piece.rstrip(_BETWEEN)
        before = piece if _is_name(piece) else ""


def _cut_words(pieces: Sequence[str], partings: AbstractSet[int], counts: Mapping[str, int]) -> _Cut:
    first = min(partings)
    commonness = [*_commonness(pieces, partings, counts)]
    # The commonest first, and of these what all begin with, from the right, but not the name of the program.
    order = sorted(
        (index for index in range(len(pieces)) if index not in partings),
        key=lambda index: (-commonness[index], index == 0, index > first, -index),
    )
    return _Cut(pieces, partings, order)


def _cut_between_letters(words: Mapping[str, _Cut]) -> Mapping[str, _Cut]:
    """As words are left out, so are their letters; of those that must be seen, the longest lose them first."""
    partings = _partings({text: text for text in words})
    return {text: _cut_letters(text, cut, partings[text]) for text, cut in words.items()}


def _cut_letters(text: str, cut: _Cut, partings: AbstractSet[int]) -> _Cut:
    longest_first = sorted(cut.needed & {*range(len(cut.pieces))}, key=lambda index: -len(cut.pieces[index]))
    starts = [0, *accumulate(map(len, cut.pieces))]
    letters = (
        at for index in (*cut.order, *longest_first) for at in range(starts[index + 1] - 1, starts[index] - 1, -1)
    )
    return _Cut(text, partings, [at for at in letters if at not in partings])


def _commonness(pieces: Sequence[str], needed: Collection[int], counts: Mapping[str, int]) -> Iterator[int]:
    """In how many texts each piece is. The name of an option is left out no sooner than its value."""
    own = [0 if index in needed else counts[word] for index, word in enumerate(_words(pieces))]
    for index, piece in enumerate(pieces):
        yield min(own[index : index + 2]) if _is_name(piece) else own[index]


def _is_name(piece: str) -> bool:
    """Whether it is the name of an option, whose value follows."""
    return piece[0] == "-" or piece[-1] == "="


def _partings(pieces_of: Mapping[str, Sequence[str]]) -> Mapping[str, set[int]]:
    """After how many pieces other texts part from each.

    In order, each shares the most with its neighbours. With any other, it shares the least of what the neighbours in
    between share.
    """
    rising = sorted(pieces_of, key=lambda text: tuple(pieces_of[text]))
    found: dict[str, set[int]] = {text: set() for text in rising}
    for ordered in (rising, rising[::-1]):
        shared: list[int] = []  # with all before, rising
        for before, text in pairwise(ordered):
            length = _shared(pieces_of[before], pieces_of[text])
            while shared and shared[-1] >= length:
                shared.pop()
            shared.append(length)
            found[text].update(shared)
    return found


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    length = 0
    for mine, others in zip(one, other, strict=False):
        if mine != others:
            break
        length += 1
    return length


def _ends(text: str, width: int) -> str:
    """The beginning, and more of the end, where commands differ from those that are not shown."""
    if _fits(text, width):
        return text
    if width < 1:
        return ""
    head = width // 3
    tail = text[head + 1 - width :] if head + 1 < width else ""
    while not _fits(tail, width - head - 1):
        tail = tail[1:]
    return set_cell_size(text, head) + _MARK + tail
