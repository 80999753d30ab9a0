"""One line -> a job, a refusal or nothing."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import GpuCap, Job, Patience, Place
from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.jobfile.options import KEYS
from simple_gpu_scheduler.jobfile.parse import LONGEST_COMMAND, LineParser, Refusal, chooses_gpus

GIB = 2**30


def parse(*lines: bytes, gpus: int = 4) -> list[Job | Refusal | None]:
    parser = LineParser(lambda: (80 * GIB,) * gpus)
    return [parser.parse(number, line, len(line)) for number, line in enumerate(lines, 1)]


def job(line: bytes) -> Job:
    parsed = parse(line)[0]
    assert isinstance(parsed, Job)
    return parsed


def problem(*lines: bytes) -> str:
    parsed = parse(*lines)[-1]
    assert isinstance(parsed, Refusal)
    return parsed.problem


def test_a_line_is_a_job_with_a_number_and_a_place() -> None:
    first, second = parse(b"python train.py", b"  python eval.py")
    assert first == Job(1, b"python train.py", Place(1))
    assert second == Job(2, b"  python eval.py", Place(2))


@pytest.mark.parametrize("line", [b"", b"   ", b"\t", b"# comment", b"  # comment #: gpus=9", b"#!/bin/sh", b"#"])
def test_blank_lines_and_comments_start_no_job_and_take_no_number(line: bytes) -> None:
    nothing, second = parse(line, b"true")
    assert nothing is None
    assert isinstance(second, Job)
    assert second.number == 1


def test_all_options_are_read() -> None:
    _, named = parse(
        b"true #: name=first",
        b"x #: gpus=2 mem=10G timeout=4h time=90 retries=3 priority=-1 name=big after=first label=ada stall=30m idle=0",
    )
    assert named == Job(
        2,
        b"x",
        Place(2),
        gpus=2,
        mem=10 * 2**30,
        timeout=14400,
        time=90,
        stall=Patience(1800),
        idle=Patience(0),
        retries=3,
        priority=-1,
        name="big",
        after=(1,),
        label="ada",
    )


@pytest.mark.parametrize("written", [b"auto", b"AUTO", b"Auto"])
def test_memory_may_be_found_out(written: bytes) -> None:
    assert job(b"x #: mem=" + written) == Job(1, b"x", Place(1), mem_auto=True)
    assert job(b"x #: gpus=2 mem=" + written) == Job(1, b"x", Place(1), gpus=2, mem_auto=True)


@pytest.mark.parametrize(
    ("lines", "mem", "auto"),
    [
        ((b"#: mem=auto", b"x #: mem=10G"), 10 * GIB, False),
        ((b"#: mem=10G", b"x #: mem=auto"), None, True),
        ((b"#: mem=10G", b"#: mem=auto", b"x"), None, True),
        ((b"#: mem=auto", b"#: mem=10G", b"x"), 10 * GIB, False),
        ((b"#: mem=auto", b"#:", b"x"), None, False),
    ],
)
def test_the_last_word_on_memory_counts(lines: tuple[bytes, ...], mem: int | None, *, auto: bool) -> None:
    parsed = parse(*lines)[-1]
    assert isinstance(parsed, Job)
    assert (parsed.mem, parsed.mem_auto) == (mem, auto)


@pytest.mark.parametrize(
    ("of_run", "lines", "mem", "auto"),
    [
        ("auto", [b"x"], None, True),
        (10 * GIB, [b"x"], 10 * GIB, False),
        (10 * GIB, [b"x #: mem=20G"], 20 * GIB, False),
        (10 * GIB, [b"x #: gpus=2"], 10 * GIB, False),
        ("auto", [b"x #: mem=0"], 0, False),
        ("auto", [b"#: mem=20G", b"x"], 20 * GIB, False),
        ("auto", [b"#: mem=20G", b"#:", b"x"], None, True),
    ],
)
def test_the_memory_of_a_run_is_that_of_lines_without_one(
    of_run: int | str, lines: list[bytes], mem: int | None, *, auto: bool
) -> None:
    for begins in (False, True):
        parser = LineParser(lambda: (80 * GIB,) * 4, mem=of_run)
        if begins:
            parser.begin("more.txt")
        parsed = [parser.parse(number, line, len(line)) for number, line in enumerate(lines, 1)][-1]
        assert isinstance(parsed, Job)
        assert (parsed.mem, parsed.mem_auto) == (mem, auto)


def test_a_default_of_memory_is_still_in_force_where_reading_continues() -> None:
    parser = LineParser(lambda: (80 * GIB,) * 4)
    parser.parse(1, b"#: mem=auto", 11)
    after = LineParser(lambda: (80 * GIB,) * 4)
    after.begin("", ReadMark("", defaults=json.loads(json.dumps(parser.defaults))))
    assert after.parse(2, b"x", 1) == Job(1, b"x", Place(2), mem_auto=True)


def test_more_memory_for_all_than_there_is_is_refused_even_on_a_plain_line() -> None:
    parsed = LineParser(lambda: (80 * GIB,) * 4, mem=81 * GIB).parse(1, b"x", 1)
    assert isinstance(parsed, Refusal)
    assert parsed.problem == "mem= asks for 81.0 GiB, but the largest GPU has 80.0 GiB"


def test_the_command_is_what_stands_before_the_options() -> None:
    assert job(b"python a.py   #: gpus=0").command == b"python a.py"
    assert job(b"echo 'a #: gpus=0'").command == b"echo 'a #: gpus=0'"
    assert job(b"echo a\\   #: gpus=0").command == b"echo a\\ "
    assert job(b"python a.py # why #: gpus=0") == Job(1, b"python a.py # why #: gpus=0", Place(1))


def test_a_default_holds_for_the_lines_below_it_and_adds_to_earlier_ones() -> None:
    lines = parse(b"a", b"#: gpus=2", b"b", b"  #: retries=1", b"c", b"d #: gpus=1", b"#:", b"e")
    jobs = [line for line in lines if isinstance(line, Job)]
    assert [(job.gpus, job.retries) for job in jobs] == [(1, None), (2, None), (2, 1), (1, 1), (1, None)]


def test_defaults_end_with_their_file_and_names_do_not() -> None:
    parser = LineParser(lambda: (80 * GIB,) * 4)
    parser.begin("a.txt")
    parser.parse(1, b"#: gpus=2", 9)
    parser.parse(2, b"true #: name=x", 14)
    parser.begin("b.txt")
    parsed = parser.parse(1, b"true #: after=x", 15)
    assert parsed == Job(2, b"true", Place(1, "b.txt"), after=(1,))
    assert str(parsed.place) == "line 1 of b.txt"


def test_a_name_given_again_means_the_later_job() -> None:
    assert parse(b"a #: name=x", b"b #: name=x", b"c #: after=x,x")[2] == Job(3, b"c", Place(3), after=(2,))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (b"gpu=2", "unknown option 'gpu'; did you mean gpus?"),
        (
            b"xyz=2",
            (
                "unknown option 'xyz'; the options are gpus, mem, timeout, stall, idle, time, retries, priority, "
                "label, name, after"
            ),
        ),
        (b"gpus", "'gpus' has no value; write gpus=VALUE"),
        (b"gpus=", "'gpus=' has no value; write gpus=VALUE"),
        (b"gpus=two", "gpus: 'two' is not a whole number (0 or more)"),
        (b"gpus=2, name=x", "gpus: '2,' is not a whole number (0 or more); separate options with spaces"),
        (b"time=1h,", "time: '1h,' is not a duration; write 90, 90s, 5m, 1h30m or 2d; separate options with spaces"),
        (b"retries=1,gpus=2", "retries: '1,gpus=2' is not a whole number (0 or more); separate options with spaces"),
        (b"name=a,b", "name: 'a,b' is not a valid name; leave out quotes, commas and backslashes"),
        (b"gpus=-1", "gpus: '-1' is not a whole number (0 or more)"),
        (b"gpus=1 gpus=2", "'gpus' is given twice"),
        (b"gpus=5", "gpus=5: this run has only 4 GPUs"),
        (b"stall=30m:kill", "stall: '30m:kill' is not understood; write 30m to be warned, or 30m:end to end the job"),
        (b"timeout=5x", "timeout: '5x' is not a duration; write 90, 90s, 5m, 1h30m or 2d"),
        (b"gpus=1 # note", "a comment cannot follow options; put it on its own line"),
        (b"mem=lots", "mem: 'lots' is not a size; write 512M or 10G, or auto"),
        (b"priority=high", "priority: 'high' is not a whole number (higher starts earlier)"),
        (b"name='a'", "name: ''a'' is not a valid name; leave out quotes, commas and backslashes"),
        (b"after=nobody", "after=nobody: no earlier job has that name"),
        (b"name=\xff", "options must be UTF-8"),
        ("name=a\u202eb".encode(), "name: 'a\u202eb' is not a valid name; leave out quotes, commas and backslashes"),
    ],
)
def test_a_wrong_option_is_refused_with_a_sentence(options: bytes, sentence: str) -> None:
    assert problem(b"true #: " + options) == sentence


def test_a_wrong_default_is_refused_and_so_is_what_would_have_had_it() -> None:
    wrong, below, right, after = parse(b"#: tiemout=4h", b"true", b"#: timeout=4h", b"true")
    assert isinstance(wrong, Refusal)
    assert isinstance(below, Refusal)
    assert below.problem == "the defaults in line 1 are invalid"
    assert right is None
    assert isinstance(after, Job)
    assert problem(b"#: gpus=9") == "gpus=9: this run has only 4 GPUs"
    assert problem(b"#: name=x") == "'name' is for a single job; put it after the job's command"


def test_a_refused_line_takes_a_number_so_that_correcting_it_renumbers_nothing() -> None:
    refused, good = parse(b"true #: gpu=1", b"true")
    assert isinstance(refused, Refusal)
    assert (refused.number, refused.is_bad_option) == (1, True)
    assert isinstance(good, Job)
    assert good.number == 2


def test_what_the_system_cannot_start_is_refused() -> None:
    assert isinstance(parse(b"x" * LONGEST_COMMAND)[0], Job)
    assert problem(b"x" * (LONGEST_COMMAND + 1)).startswith("the command has 131,072 bytes")
    assert problem(b"a\0b").startswith("the command contains a NUL byte")
    assert problem(b"a\0b #: gpus=1").startswith("the command contains a NUL byte")


def test_a_line_of_which_a_part_was_dropped_is_refused_whatever_is_left_of_it() -> None:
    for text in (b"   ", b"true", b"true #: gpus=1", b"#: gpus=1", b"# a\ntrue"):
        refused = LineParser(lambda: (80 * GIB,) * 4).parse(1, text, 1_000_000)
        assert isinstance(refused, Refusal), text
        assert refused.problem == "the line has 1,000,000 bytes; no command with its options is that long"
    assert LineParser(lambda: (80 * GIB,) * 4).parse(1, b"# only a comment", 1_000_000) is None


def test_numbers_without_end_are_refused() -> None:
    for key in ("mem", "timeout", "gpus", "priority"):
        assert problem(f"true #: {key}={'9' * 400}".encode()).startswith(f"{key}: ")


def test_options_of_a_job_of_several_lines_stand_behind_its_last() -> None:
    assert job(b"cat <<E\n#: no\nE\ntrue #: gpus=0\n").command == b"cat <<E\n#: no\nE\ntrue"
    assert problem(b"#: gpus=2\ntrue").startswith("in a multi-line job")
    assert problem(b"a #: gpus=2\nb #: gpus=1").startswith("in a multi-line job")
    assert parse(b"# only\n# comments\n") == [None]


@given(st.binary())
@example(b"echo 'a #: gpus=2'")
@example(b"\xff\xfe caf\xe9")
def test_any_bytes_without_options_are_the_command_or_refused_or_a_comment(line: bytes) -> None:
    parsed = parse(line)[0]
    if isinstance(parsed, Job) and not re.search(rb"#:", line):
        assert parsed.command == line
    elif isinstance(parsed, Job):
        assert line.startswith(parsed.command)
    elif parsed is None:
        assert not line.strip() or line.strip().startswith(b"#")


@given(st.binary(max_size=30).filter(lambda line: line.strip() and b"#" not in line and b"\0" not in line))
def test_options_behind_any_command_are_either_read_or_part_of_a_string(command: bytes) -> None:
    parsed = parse(command + b" #: gpus=3")[0]
    assert isinstance(parsed, Job)
    assert (parsed.gpus == 3) == (parsed.command != command + b" #: gpus=3")


@given(st.sampled_from(sorted(KEYS)), st.text(max_size=6))
def test_any_value_is_read_or_refused(key: str, value: str) -> None:
    assert isinstance(parse(f"true #: {key}={value}".encode())[0], Job | Refusal)


def test_a_job_that_needs_more_gpus_than_a_run_may_hold_is_refused_with_who_says_so() -> None:
    parser = LineParser(lambda: (80 * GIB,) * 4, GpuCap(2, "/etc/it.toml"))
    refused = parser.parse(1, b"true #: gpus=3", 14)
    assert isinstance(refused, Refusal)
    assert refused.problem == "gpus=3: a run uses at most 2 at once (/etc/it.toml, gpus-per-run)"
    assert isinstance(parser.parse(2, b"true #: gpus=2", 14), Job)


@pytest.mark.parametrize(
    "command",
    [
        "CUDA_VISIBLE_DEVICES=0 python train.py",
        "cd a && CUDA_VISIBLE_DEVICES='1' python train.py",
        "cd a;CUDA_VISIBLE_DEVICES=GPU-12ab python train.py",
        "export CUDA_VISIBLE_DEVICES=0,1; python train.py",
        "env LANG=C CUDA_VISIBLE_DEVICES=$i python train.py",
        "bash -c 'CUDA_VISIBLE_DEVICES=0 python train.py'",
        "(CUDA_VISIBLE_DEVICES=MIG-1 python train.py)",
        "echo one\nCUDA_VISIBLE_DEVICES=${GPU} python train.py",
        "MY_CUDA_VISIBLE_DEVICES=0 CUDA_VISIBLE_DEVICES=3 python train.py",
    ],
)
def test_a_command_that_chooses_its_gpus(command: str) -> None:
    assert chooses_gpus(command.encode())


@pytest.mark.parametrize(
    "command",
    [
        "python train.py",
        "python train.py --gpus $CUDA_VISIBLE_DEVICES",
        "echo CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES",
        'CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES%%,*}" python train.py',
        "MY_CUDA_VISIBLE_DEVICES=0 python train.py",
        "x=$CUDA_VISIBLE_DEVICES=0",
        "python train.py --CUDA_VISIBLE_DEVICES=0",
        "CUDA_VISIBLE_DEVICES= python eval.py",
        "CUDA_VISIBLE_DEVICES='' python eval.py",
        "CUDA_VISIBLE_DEVICES=-1 python eval.py",
        'docker run --gpus "device=$CUDA_VISIBLE_DEVICES" -e CUDA_VISIBLE_DEVICES=0 image',
    ],
)
def test_a_command_that_leaves_its_gpus_as_they_are(command: str) -> None:
    assert not chooses_gpus(command.encode())


def test_a_line_that_asks_for_what_the_run_cannot_see_is_refused() -> None:
    parser = LineParser(lambda: None, lack_of=lambda name: "it is not measured" if name == "idle" else "")
    lines = b"a #: idle=1m", b"#: idle=1m:end", b"b", b"#: idle=0", b"c #: stall=1m"
    parsed = [parser.parse(number, line, len(line)) for number, line in enumerate(lines, 1)]
    assert [each.problem for each in parsed if isinstance(each, Refusal)] == [
        "idle= it is not measured",
        "idle= it is not measured",
        "the defaults in line 2 are invalid",
    ]
    assert parsed[4] == Job(4, b"c", Place(5), stall=Patience(60), idle=Patience(0))
