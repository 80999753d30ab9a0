"""When a GPU that others have used is free again: never in a gap, and never later than it must be."""

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.gpus import USED_MEMORY, Look, Neighbour, Reason
from simple_gpu_scheduler.gpus.vacancy import NOBODY, observe

BUSY = Look(Reason("alice python", "alice", by_occupancy=True), others=[Neighbour(7, "alice", "alice python")])
FULL = Look(Reason("5 GiB used by others", USED_MEMORY, by_occupancy=True))
BROKEN = Look(Reason("Unknown Error", "problem"))
FREE = Look()
SEEN = st.lists(st.tuples(st.floats(0, 20), st.sampled_from([BUSY, FULL, BROKEN, FREE])), max_size=30)


def watch(seen: list[tuple[float, Look]], free_for: float) -> list[tuple[float, Look, Look]]:
    """When each look was, what it showed, and what was made of it."""
    vacancy, now, found = NOBODY, 0.0, []
    for pause, look in seen:
        now += pause
        vacancy, judged = observe(vacancy, look, now, free_for)
        found.append((now, look, judged))
    return found


@given(SEEN, st.floats(0, 30))
def test_a_gpu_is_never_free_before_others_have_left_it_alone_for_that_long(
    seen: list[tuple[float, Look]], free_for: float
) -> None:
    last = -float("inf")
    for now, look, judged in watch(seen, free_for):
        last = now if look is BUSY else last
        assert judged.reason or now - last >= free_for


@given(SEEN, st.floats(0, 30))
def test_it_is_always_free_when_they_were_not_seen_for_that_long_and_so_when_nobody_was(
    seen: list[tuple[float, Look]], free_for: float
) -> None:
    first_free = -float("inf")  # since others were seen, or something that may be others
    for now, look, judged in watch(seen, free_for):
        if look is not FREE:
            first_free = float("inf") if look in (BUSY, FULL) else first_free
            assert judged == look
            continue
        first_free = min(first_free, now)
        assert judged == look or now - first_free < free_for


@given(st.lists(st.sampled_from([BROKEN, FREE]), max_size=9))
def test_without_others_nothing_is_ever_waited_for(seen: list[Look]) -> None:
    assert all(judged == look for _, look, judged in watch([(1, look) for look in seen], 10))


def test_the_reason_stays_the_same_while_the_wait_lasts() -> None:
    _, *judged = (each for _, _, each in watch([(0, BUSY), (1, FREE), (3, FREE), (5, FREE)], 10))
    assert {each.reason and each.reason.sentence for each in judged} == {"free for less than 10 s after alice python"}


def test_memory_of_nobody_visible_counts_once_it_was_in_use_for_two_seconds() -> None:
    brief = watch([(0, FULL), (1.9, FULL), (1, FREE)], 10)
    assert brief[-1][2] == FREE
    long = watch([(0, FULL), (2, FULL), (1, FREE), (3, FREE)], 10)
    assert long[-1][2].reason == Reason("free for less than 10 s after use by others", "free for", by_occupancy=True)
