"""Which runs are deleted, and why others are left."""

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.journal.removals import RunOnDisk, Unwanted, choose_removals

NOW, DAY = 1e9, 86_400.0
IDS = ("a", "b", "c")

runs = st.builds(
    RunOnDisk,
    run=st.sampled_from(IDS),
    journal=st.just(""),
    disk=st.integers(0, 100),
    changed=st.floats(NOW - 9 * DAY, NOW + DAY),
    is_active=st.booleans(),
    ending=st.sampled_from(("finished", "refused", "stopped", "died")),
    is_kept=st.booleans(),
)
wishes = st.builds(
    Unwanted,
    named=st.frozensets(st.sampled_from(IDS)),
    all_runs=st.booleans(),
    older_than=st.none() | st.floats(0, 9 * DAY),
    unfinished=st.booleans(),
)


@given(st.lists(runs), wishes)
def test_never_is_one_deleted_that_is_active_kept_or_unfinished_unless_that_was_said(
    found: list[RunOnDisk], wish: Unwanted
) -> None:
    removals = choose_removals(found, wish, NOW)
    for run in removals.runs:
        is_old = wish.older_than is not None and run.changed < NOW - wish.older_than
        assert run.run in wish.named or wish.all_runs or is_old
        assert not run.is_active
        assert run.ending in ("finished", "refused") or wish.unfinished
        assert not run.is_kept or run.run in wish.named
    left = [run for run, _ in removals.left]
    if wish.all_runs:
        assert len(left) + len(removals.runs) == len(found)
    if not (wish.named or wish.all_runs or wish.older_than is not None):
        assert not removals.runs
        assert not left


def test_each_that_is_left_has_a_reason() -> None:
    active, kept = RunOnDisk("a", "", 0, NOW, is_active=True), RunOnDisk("b", "", 0, NOW, is_kept=True)
    unfinished = RunOnDisk("c", "", 0, NOW, ending="died")
    assert choose_removals([active, kept, unfinished], Unwanted(all_runs=True), NOW).left == [
        (active, "it is active"),
        (kept, "it is kept; to delete it, name it"),
        (unfinished, "it can still be resumed; to delete it, add --unfinished"),
    ]


def test_a_run_is_active_or_has_ended_in_the_words_of_history() -> None:
    run = RunOnDisk("a", "", 0, NOW)
    assert run.state == "finished"
    assert run._replace(ending="died").state == "died"
    assert run._replace(ending="died", is_active=True).state == "active"
