"""Commands that are cut so that they can be told apart."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from simple_gpu_scheduler.display.abbreviation import in_turn, shorten
from simple_gpu_scheduler.display.table import shorten_after

SWEEP = tuple(
    f"python3 train.py --data /data/imagenet --lr {lr} --epochs 100 --seed {seed}"
    for lr in (0.1, 0.01)
    for seed in (1, 2)
)
TEXT = st.text("ab /=-…字", max_size=60) | st.sampled_from([*SWEEP, "true", "x" * 300 + "y", "x" * 300])


def cut(width: int, *texts: str) -> list[str]:
    return list(shorten(texts, (width,) * len(texts)))


@given(st.lists(st.tuples(TEXT, st.integers(0, 90)), min_size=1, max_size=8))
def test_no_text_is_wider_than_its_width(rows: list[tuple[str, int]]) -> None:
    texts, widths = zip(*rows, strict=True)
    shown = shorten(texts, widths)
    assert len(shown) == len(texts)
    assert all(cell_len(text) <= width for text, width in zip(shown, widths, strict=True))


@given(st.lists(TEXT, min_size=1, max_size=8), st.integers(0, 30))
@example(["a a a b a", "a a b a", "a b a"], 0)
@example(["x" * 200 + "a", "x" * 200 + "b"], 0)
def test_two_different_texts_never_look_alike_where_the_width_allows_it(texts: list[str], more: int) -> None:
    shown = cut(4 * len(texts) + more, *texts)
    assert len(set(shown)) == len(set(texts))
    assert len(set(zip(texts, shown, strict=True))) == len(set(texts))


@given(st.lists(TEXT, min_size=1, max_size=8), st.integers(0, 30))
def test_what_is_left_out_is_marked_and_nothing_is_added(texts: list[str], more: int) -> None:
    for text, shown in zip(texts, cut(4 * len(texts) + more, *texts), strict=True):
        rest = iter(text)
        assert all(letter in rest for letter in shown if letter not in "… /="), (text, shown)
        assert shown == text or "…" in shown


@given(st.integers(12, 80))
def test_the_values_of_a_sweep_are_shown_whole(width: int) -> None:
    for command, shown in zip(SWEEP, cut(width, *SWEEP), strict=True):
        assert [value for value in command.split()[5::4] if value not in shown.split()] == []


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (70, "python3 train.py --data /data/imagenet --lr 0.1 --epochs 100 --seed 1"),
        (60, "python3 train.py --data /… --lr 0.1 --epochs 100 --seed 1"),
        (50, "python3 train.py … --lr 0.1 --epochs 100 --seed 1"),
        (40, "python3 … --lr 0.1 --epochs 100 --seed 1"),
        (35, "python3 … --lr 0.1 … --seed 1"),
        (20, "… 0.1 … --seed 1"),
        (13, "… 0.1 … 1"),
    ],
)
def test_what_all_share_is_left_out_first_from_its_middle(width: int, shown: str) -> None:
    assert cut(width, *SWEEP)[0] == shown


def test_of_long_words_letters_are_left_out_from_the_right() -> None:
    words = [f"data-preparation-{number}-for-all" for number in (1, 2)]
    assert cut(12, *words) == ["data-prep…1…", "data-prep…2…"]
    assert cut(24, *words) == ["data-preparation-1-for-…", "data-preparation-2-for-…"]
    several = [f"prepare imagenet-first-part-{number} short-x{number}" for number in (1, 2)]
    assert cut(14, *several) == ["… imagenet-…1…", "… imagenet-…2…"]


def test_texts_get_what_their_heads_leave_of_the_line() -> None:
    heads = ["12: ", "字 123: "]
    assert shorten_after(heads, ["train --lr 0.1", "train --lr 0.2"], 18) == ["train --lr 0.1", "… --lr 0.2"]
    assert shorten_after(heads, ["train --lr 0.1", "train --lr 0.2"], 3) == ["", ""]


def test_of_paths_what_differs_is_kept() -> None:
    paths = [f"process /data/imagenet/train/{number}.tar" for number in range(3)]
    assert cut(20, *paths) == [f"process /…/{number}.tar" for number in range(3)]


def test_a_value_is_kept_with_its_name_even_where_another_would_do() -> None:
    sampled = ["t --data d --lr 0.12 --amp --wd 0.5", "t --data d --lr 0.34 --amp --wd 0.7"]
    assert cut(30, *sampled)[0] == "t … --lr 0.12 --amp --wd 0.5"
    assert cut(25, *sampled)[0] == "t … --lr 0.12 … --wd 0.5"


def test_a_text_that_fits_is_not_changed() -> None:
    assert cut(40, *SWEEP, "echo …")[-1] == "echo …"


def test_of_one_command_the_beginning_and_more_of_the_end_are_kept() -> None:
    assert cut(20, "python3 train.py --lr 0.1", "python3 train.py --lr 0.1") == ["python…n.py --lr 0.1"] * 2


@given(st.sets(TEXT, min_size=1, max_size=8))
def test_the_parts_of_a_text_are_all_of_it(texts: set[str]) -> None:
    parts = in_turn(texts)
    assert {text: "".join(parts[text]) for text in texts} == {text: text for text in texts}


def test_what_is_shared_and_what_differs_come_in_turn() -> None:
    shared = "python3 train.py --data /data/imagenet "
    assert in_turn(SWEEP)[SWEEP[0]] == [shared, "--lr 0.1 ", "--epochs 100 ", "--seed 1"]
    assert in_turn(["true", "false now"])["false now"] == ["", "false now"]
    assert in_turn(["only one"]) == {"only one": ["only one"]}


def test_of_very_long_texts_the_beginnings_are_compared() -> None:
    texts = [letter + " word" * 50_000 for letter in "ab"]
    assert cut(20, *texts) == ["a word word word …", "b word word word …"]
    assert cut(9, "x " * 3000 + "a", "x " * 3000 + "b") == ["x x…x x a", "x x…x x b"]
