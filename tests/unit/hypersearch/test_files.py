"""Sweeps in files: the same in each format, what is wrong in one is said, and what is saved comes out again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.hypersearch.commands import Sweeps
from simple_gpu_scheduler.hypersearch.definitions import read_sweeps, save_sweeps
from simple_gpu_scheduler.hypersearch.files import load
from simple_gpu_scheduler.hypersearch.sweep import IN_ORDER, SHUFFLED, Rows, Sweep, WrittenValues


def lines_of(sweeps):
    try:
        return list(Sweeps(sweeps).lines())
    except UserError as error:
        return str(error)


VALUE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"), max_size=8)
VALUE |= st.sampled_from(
    ["range:1:3", "int:1:9", "", "#: x", "'", '"', "$(x)", "`x`", "\udcff\udc80", "{a}", "\r", "-"]
)


SWEEP = {
    "pattern": st.sampled_from(["x {a} {?b}", "'{a}' {--b=b} {c}", "{{é}} {a} \udcfe {?b:>3}"]),
    "a": st.lists(VALUE, min_size=1, max_size=4).map(lambda words: WrittenValues(tuple(words), are_literal=True)),
    "b": st.sampled_from([WrittenValues(("range:1:9",)), WrittenValues(("1", "2")), WrittenValues(("uniform:0:1",))]),
    "rows": st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=4).map(lambda rows: Rows(("c", "d"), tuple(rows))),
    "where": st.sampled_from([(), ("b < 9", "b != 1")]), "when": st.sampled_from([{}, {"b": "c != 'x'"}]),
    "sampling_mode": st.sampled_from([IN_ORDER, SHUFFLED]), "name": st.sampled_from(["", "{c}-{b}"]),
    "samples": st.integers(1, 20), "seed": st.integers(-(2**70), 2**70),
}  # fmt: skip
SWEEPS = st.lists(st.fixed_dictionaries(SWEEP), min_size=1, max_size=3)


@settings(max_examples=50, deadline=None)
@given(SWEEPS)
def test_what_is_saved_gives_the_same_lines(drawn) -> None:
    sweeps = [Sweep(parameters={"a": one.pop("a"), "b": one.pop("b")}, **one) for one in map(dict, drawn)]
    if {len(words.words) for words in sweeps[0].parameters.values()} == {2}:
        sweeps[0] = sweeps[0]._replace(zips=(("a", "b"),))
    again = read_sweeps(load(".json", save_sweeps(sweeps).encode()))
    assert again == sweeps
    assert lines_of(again) == lines_of(sweeps)
