"""What a lease file says of its holder: written by us, by older versions, or by anybody."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.gpus.leases.record import SIZE, Record, decode, encode, is_one_of_ours, show_holder
from simple_gpu_scheduler.jobfile.options import NOT_IN_NAMES
from simple_gpu_scheduler.system.users import user_name

ME, NAME = os.getpid(), user_name(os.getuid())
JOB, OTHER = b"/20260102-030405-5e9355.4.1", b"/20260102-030405-5e9355.7.2"
WIDE = Record(ME, (JOB,), 4, "wide")


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (WIDE, ', job 4 "wide" of run 5e9355'),
        (WIDE._replace(name="", job=0), ", job 4 of run 5e9355"),
        (WIDE._replace(marks=(OTHER,)), ", job 7 of run 5e9355"),
        (WIDE._replace(marks=(OTHER, JOB)), ", jobs 4, 7 of run 5e9355"),
        (
            Record(ME, tuple(JOB.replace(b".4.", b".%d." % at) for at in range(9))),
            ", jobs 0, 1, 2 and 6 more of run 5e9355",
        ),
        (Record(ME, (b"/lease-4242-1767225600",)), ", lease()"),
        (Record(ME, (b"/run-4242-1767225600.1.1",)), ", simple_gpu_scheduler run"),
        (Record(ME), ""),
        (Record(ME, (b"/strange",)), ""),
    ],
)
def test_a_holder_is_named_by_what_it_is(record: Record, what: str) -> None:
    assert decode(encode(record)) == record
    assert show_holder(record, 7200).sentence == f"leased by {NAME} (pid {ME}{what}) for 2 h"


def test_one_that_cannot_be_seen_is_named_by_its_job() -> None:
    unseen = "leased by a process that is not visible from here"
    assert show_holder(Record(), 0).sentence == unseen
    assert show_holder(WIDE._replace(pid=2**22 - 1), 0).sentence == f'{unseen} (job 4 "wide" of run 5e9355)'


def test_a_record_of_an_older_version_is_read_and_what_lay_behind_it_is_not_taken_for_its_name() -> None:
    old = b"sgs1 %10d %s\n" % (ME, JOB)
    named = encode(WIDE._replace(pid=ME + 1))
    assert decode(old) == decode(old + named[len(old) :]) == decode(old + b"\xff" * 500) == Record(ME, (JOB,))
    assert is_one_of_ours(decode(old), b"/outer.1.1" + JOB)


def test_an_older_version_reads_what_it_knows_of_a_new_record() -> None:
    match = re.match(rb"sgs1 +(\d{1,10}) ([\w./-]*)\n", encode(WIDE), re.ASCII)
    assert match
    assert match.groups() == (b"%d" % ME, JOB)


NAMES = st.from_regex(f"[^{NOT_IN_NAMES}]{{0,200}}", fullmatch=True).filter(str.isprintable)


@given(NAMES, st.integers(0, 600))
def test_a_record_never_outgrows_its_place_and_keeps_any_name(name: str, count: int) -> None:
    others = [JOB.replace(b".4.", b".%d." % at) for at in range(count)]
    record = Record(ME, (*others, JOB), 4, name)
    written = encode(record)
    assert len(written) <= SIZE
    read = decode(written)
    assert read.marks[-1:] == (JOB,)
    assert read.name == name[:40]


@given(st.one_of(st.binary(), st.builds(lambda tail: encode(Record(ME, (JOB,)))[:-1] + tail, st.binary())))
def test_whatever_anybody_wrote_gives_a_short_sentence_that_can_be_shown(data: bytes) -> None:
    sentence = show_holder(decode(data), -5).sentence
    assert sentence.startswith("leased by ")
    assert len(sentence) < 200
    assert sentence.isprintable()


@given(st.binary(min_size=1).filter(lambda name: b"\n" not in name))
def test_a_forged_name_is_shown_only_where_it_looks_like_a_name(name: bytes) -> None:
    forged = b"sgs1 %10d %s\njob 4 of %d %s\n" % (ME, JOB, ME, name)
    shown = show_holder(decode(forged), 0).sentence
    assert shown.isprintable()
    assert len(shown) < 200
    assert shown.count('"') in (0, 2)
