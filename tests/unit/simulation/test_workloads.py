"""Workloads: what is read, what is left out and said, what is refused, and what the simulator gets."""

import json
from collections import Counter
from itertools import chain
from math import log10
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.journal.lengths import history_of
from simple_gpu_scheduler.journal.run_state import read_state
from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits
from simple_gpu_scheduler.scheduling.templates import template_of
from simple_gpu_scheduler.simulation.scenario import jobs_of
from simple_gpu_scheduler.simulation.simulate import simulate
from simple_gpu_scheduler.simulation.workloads.csv import read_csv
from simple_gpu_scheduler.simulation.workloads.jobs import ESTIMATES, WorkloadJob, arrivals
from simple_gpu_scheduler.simulation.workloads.swf import read_swf
from simple_gpu_scheduler.simulation.workloads.synthetic import Synthetic, generate, parse_synthetic
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "journal-1.jsonl"


def estimates_of(jobs, estimates):
    return [each.job.time for each in arrivals(jobs, 8, estimates)[0]]


def templates(jobs):
    return [template_of(each.job.command.decode()) for each in arrivals(jobs, 10**9, "past")[0]]


def jobs_or_refusal(read, text):
    try:
        return read(text)[0], ""
    except ValueError as error:
        return [], str(error)


class TestArrivals:
    def test_they_are_sorted_numbered_and_start_at_0(self) -> None:
        jobs = [
            WorkloadJob(30, 1, user="late"),
            WorkloadJob(10, 2, user="a", priority=3),
            WorkloadJob(10, 3, gpus=2, user="b"),
        ]
        found, remarks = arrivals(jobs, 8, "exact")
        assert [(each.at, each.length, each.job.number, each.job.label) for each in found] == [
            (0, 2, 1, "a"),
            (0, 3, 2, "b"),
            (20, 1, 3, "late"),
        ]
        assert [(each.job.gpus, each.job.priority) for each in found] == [(1, 3), (2, 0), (1, 0)]
        assert remarks == []

    def test_jobs_that_are_too_wide_are_left_out_and_reported(self) -> None:
        found, remarks = arrivals(
            [WorkloadJob(0, 1, 16), WorkloadJob(5, 1, 8), WorkloadJob(6, 1), WorkloadJob(7, 1, 1024)], 8, "exact"
        )
        assert [(each.at, each.job.number, each.job.gpus) for each in found] == [(0, 1, 8), (1, 2, 1)]
        assert remarks == ["2 jobs wider than 8 GPUs are left out; the widest needs 1,024"]
        assert arrivals([WorkloadJob(0, 1, 2)], 1, "exact") == (
            [],
            ["1 job wider than 1 GPU is left out; the widest needs 2"],
        )

    def test_of_nothing_comes_nothing(self) -> None:
        assert arrivals([], 8, "past") == ([], [])

    def test_what_is_known_of_lengths_is_what_was_asked_for(self) -> None:
        jobs = [WorkloadJob(0, 5, requested=60), WorkloadJob(1, 6)]
        known = {estimates: estimates_of(jobs, estimates) for estimates in ESTIMATES}
        assert known == {"exact": [5, 6], "requested": [60, None], "past": [None, None], "none": [None, None]}

    def test_commands_are_kept_with_bytes_that_are_no_text(self) -> None:
        assert arrivals([WorkloadJob(0, 1, command="echo \udcff")], 1, "past")[0][0].job.command == b"echo \xff"

    @settings(deadline=None)
    @given(st.sets(st.tuples(st.text(), st.integers(1, 9999)), max_size=30))
    def test_without_a_command_each_user_and_width_always_has_a_template_of_its_own(self, kinds) -> None:
        jobs = [WorkloadJob(0, 1, gpus, user) for user, gpus in kinds] * 2
        assert Counter(Counter(templates(jobs)).values()) == ({2: len(kinds)} if kinds else {})

    def test_more_than_ten_users_with_numbers_for_names_stay_apart(self) -> None:
        assert len(set(templates([WorkloadJob(0, 1, user=f"{number}") for number in range(120)]))) == 120

    @pytest.mark.parametrize("policy", ["sjf", "hrrn", "lpt"])
    def test_with_no_estimates_nothing_is_ever_learned_and_the_order_is_that_of_coming(self, policy) -> None:
        jobs = [WorkloadJob(0, 9 - number, user=f"u{number % 3}") for number in range(9)]
        workload, _ = arrivals(jobs, 1, "none")
        starts = simulate(
            workload, Scheduler(Limits(("0",)), POLICIES[policy](), estimates=Estimates(learns=False)), ["0"]
        )
        assert list(starts) == sorted(starts)

    def test_what_is_learned_changes_the_order(self) -> None:
        jobs = [WorkloadJob(0, 50, user="slow"), WorkloadJob(0, 1, user="quick")] * 4
        workload, _ = arrivals(jobs, 1, "past")
        starts = simulate(workload, Scheduler(Limits(("0",)), POLICIES["sjf"](), estimates=Estimates()), ["0"])
        assert list(starts) != sorted(starts)
        assert max(starts[1::2]) < sorted(starts[::2])[1]


class TestCsv:
    def test_a_whole_one(self) -> None:
        text = (
            "submit,duration,gpus,user,requested,priority,command,status\n"
            '0,10.5,2,alice,60,-3,"python train.py, quick",1\n'
            "5,0,,,,,,\n"
        )
        assert read_csv(text) == (
            [WorkloadJob(0, 10.5, 2, "alice", 60, "python train.py, quick", -3), WorkloadJob(5, 0, 1, "", None, "", 0)],
            [],
        )

    @pytest.mark.parametrize(
        "text",
        [
            "submit,runtime,procs,vc,timeout\r\n1,2,3,me,4\r\n",
            "\ufeff Submit , RUNTIME,Procs,VC,time,timeout\n 1 , 2 , 3 , me , 4 , 99 \n\n",
            "vc,user,timeout,requested,procs,gpus,runtime,duration,submit\nx,me,9,4,8,3.0,7,2,1",
            "\n,\n" + "submit,duration,gpus,user,requested\n" + "   \n" + "1,2,3,me,4\n,,,,\n",
        ],
        ids=["CRLF", "blanks, case and a mark", "the first name counts", "empty lines"],
    )
    def test_it_may_be_written_in_many_ways(self, text) -> None:
        assert read_csv(text) == ([WorkloadJob(1, 2, 3, "me", 4)], [])

    def test_dates_are_in_utc_where_they_do_not_say(self) -> None:
        dates = [
            "2026-01-02T03:04:05",
            "2026-01-02 03:04:05Z",
            "2026-01-02T05:04:05+02:00",
            "1767323045",
            "1767323045.0",
        ]
        jobs, _ = read_csv("submit,duration\n" + "".join(f"{date},1\n" for date in dates))
        assert {job.submit for job in jobs} == {1767323045.0}
        assert read_csv("submit,duration\n-5,1\n")[0] == [WorkloadJob(-5, 1)]

    def test_what_tells_too_little_is_left_out_and_counted(self) -> None:
        text = "submit,duration,gpus\n1,,1\n2,-1,1\n3\n4,1,0\n5,1,1\n"
        assert read_csv(text) == (
            [WorkloadJob(5, 1)],
            ["3 rows without a duration are left out", "1 row without a GPU is left out"],
        )

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "line 1: no header; a trace needs the columns submit and duration"),
            ("\n\n", "no header"),
            ("submit,gpus\n", "line 1: no column 'duration' among 'submit', 'gpus'; a trace needs"),
            ("\nstart\tduration\n", r"line 2: no column 'submit' among 'start\\tduration'; .* separated by commas"),
            (",".join(f"c{number}" for number in range(99)), "'c9', …; a trace needs"),
            ("\x00\x01\x1b[31m\udcff,\n", r"(no column 'submit' among '\\x00\\x01\\x1b\[31m\\udcff'|NUL)"),
            ("submit,duration\n1,2\n3,-2\n", "line 3: duration is '-2'; expected a number of seconds \\(0 or more\\)"),
            ("submit,duration\n1,nan\n", "line 2: duration is 'nan'; expected"),
            ("submit,duration\n1,1e300\n", "line 2: duration is '1e300'; expected"),
            ("submit,duration\n1,inf\n", "duration is 'inf'"),
            ("submit,duration\n,1\n", "submit is ''; expected a number of seconds, or a date and time such as 2026-"),
            ("submit,duration\n2026-13-45,1\n", "submit is '2026-13-45'; expected"),
            ("submit,duration\n1767323045000,1\n", "submit is '1767323045000'"),
            ("submit,duration,gpus\n1,1,0.5\n", "line 2: gpus is '0.5'; expected a whole number \\(0 or more\\)"),
            ("submit,duration,gpus\n1,1,-1\n", "gpus is '-1'"),
            ("submit,duration,gpus\n1,1,nan\n", "gpus is 'nan'"),
            (f"submit,duration,gpus\n1,1,1{'0' * 5000}\n", "gpus is '1000.{36}'…; expected"),
            ('submit,duration,command\n0,10,"abc\n1,5,y\n', "unexpected end of data"),
            ("submit,duration,priority\n1,1,high\n", "priority is 'high'; expected a whole number$"),
            ("submit,duration,time\n1,1,-7\n", "requested is '-7'"),
            (f'submit,duration,user\n1,1,"{"x" * 200_000}"\n', "line 2: field larger than field limit"),
        ],
    )
    def test_what_is_wrong_is_reported_with_its_line(self, text, problem) -> None:
        with pytest.raises(ValueError, match=problem) as error:
            read_csv(text)
        assert "\n" not in str(error.value)
        assert str(error.value).isprintable()

    def test_a_header_alone_is_an_empty_workload(self) -> None:
        assert read_csv("submit,duration,gpus") == ([], [])

    def test_without_a_column_of_gpus_it_says_so(self) -> None:
        jobs, [remark] = read_csv("submit,duration,num_gpus,user\n0,5,4,ann\n")
        assert jobs == [WorkloadJob(0, 5, 1, "ann")]
        assert remark == ("no column gpus or procs among 'submit', 'duration', 'num_gpus', 'user': each job has 1 GPU")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("1h30m", 5400),
            ("90s", 90),
            ("90", 90),
            ("1.5", 1.5),
            ("01:30:00", 5400),
            ("2-00:00:01", 172_801),
            ("5:00", 300),
        ],
    )
    def test_a_length_may_be_written_in_many_ways(self, text: str, expected: float) -> None:
        [job] = read_csv(f"submit,duration,gpus,requested\n0,{text},1, {text} \n")[0]
        assert (job.length, job.requested) == (expected, expected)

    @settings(deadline=None)
    @given(st.text(alphabet=st.characters(codec=None), max_size=200), st.booleans())
    def test_any_text_is_read_or_refused_in_a_sentence_with_a_line(self, text, has_header) -> None:
        jobs, refusal = jobs_or_refusal(read_csv, "submit,duration,gpus,time\n" * has_header + text)
        assert refusal.startswith("line ") or not refusal
        assert all(job.length >= 0 and job.gpus > 0 for job in jobs)

    @settings(deadline=None)
    @given(st.datetimes(), st.sampled_from(["", "Z", "+23:59", "-23:59"]))
    def test_every_date_is_a_time(self, date, zone) -> None:
        jobs, _ = read_csv(f"submit,duration\n{date.isoformat()}{zone},1\n")
        assert isinstance(jobs[0].submit, float)


SWF = """; Version: 2.2
; MaxProcs: 128

  1    0   5  100   4  -1 -1   8  3600 -1 1 12 1 -1 1 -1 -1 -1
  2   10  -1   50.5 -1 -1 -1   8    -1 -1 0 -1 1 -1 1 -1 -1 -1
  3   20  -1   -1    4 -1 -1   8    60 -1 5  1 1 -1 1 -1 -1 -1
  4   30  -1   7    -1 -1 -1  -1    60 -1 5  1 1 -1 1 -1 -1 -1
"""


class TestSwf:
    @pytest.mark.parametrize("text", [SWF, "\ufeff" + SWF.replace("\n", "\r\n")])
    def test_a_whole_one(self, text) -> None:
        assert read_swf(text) == (
            [WorkloadJob(0, 100, 4, "12", 3600), WorkloadJob(10, 50.5, 8, "", None)],
            ["2 rows without a submit time, a run time or processors are left out"],
        )

    @pytest.mark.parametrize("text", ["", ";\n", "\n \n"])
    def test_of_nothing_comes_nothing(self, text) -> None:
        assert read_swf(text) == ([], [])

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("; a\nsubmit,duration\n", "line 2: 1 field instead of 18; expected the Standard Workload Format"),
            ("1 " * 17, "line 1: 17 fields instead of 18"),
            (SWF.replace(" 100 ", " -100 "), r"line 4: the run time \(field 4\) is '-100'; expected a number of sec"),
            (SWF.replace(" 100 ", " nan "), r"line 4: the run time \(field 4\) is 'nan'"),
            (SWF.replace(" 100 ", " 1e99 "), r"line 4: the run time \(field 4\) is '1e99'"),
            (SWF.replace("   4  -1 -1   8 ", " 4.5 -1 -1 8 "), r"the number of processors \(field 5\) is '4.5'"),
            (SWF.replace(" 12 ", " \x1b[0m "), r"the user \(field 12\) is '\\x1b\[0m'"),
        ],
    )
    def test_what_is_wrong_is_reported_with_its_line(self, text, problem) -> None:
        with pytest.raises(ValueError, match=problem):
            read_swf(text)

    @settings(deadline=None)
    @given(st.lists(st.sampled_from(["-1", "0", "1", "2.5", "1e400", "x", ";", "\n"]), max_size=40))
    def test_any_text_is_read_or_refused_in_a_sentence_with_a_line(self, words) -> None:
        jobs, refusal = jobs_or_refusal(read_swf, " ".join(words))
        assert refusal.startswith("line ") or not refusal
        assert all(job.length >= 0 and job.gpus > 0 for job in jobs)


def journal_line(event, **values) -> bytes:
    return json.dumps({"event": event, "at": 1.0, **values}, separators=(",", ":")).encode() + b"\n"


def began(**values) -> bytes:
    return journal_line("run began", run="r", version=1, **values)


def job_read(number, command, **values) -> bytes:
    return journal_line("job read", job=number, line=number, command=command, **values)


def job_ended(number, runtime, outcome="succeeded", **values) -> bytes:
    ended = {"attempt": 1, "outcome": outcome, "code": 0, "started": 0.5, "runtime": runtime, "final": True}
    return journal_line("job ended", job=number, **ended | values)


def job_measured(number, *maxima, attempt=1, **values) -> bytes:
    gpus = [{"gpu": str(at), "memory": {"mean": 1.0, "max": most}, **values} for at, most in enumerate(maxima)]
    return journal_line("attempt measured", job=number, attempt=attempt, gpus=gpus)


def peaks_in(*lines: bytes) -> object:
    return history_of([began() + b"".join(lines)], with_peaks=True).peaks


class TestPastRuns:
    def test_rows_are_the_jobs_that_ended_by_themselves(self) -> None:
        data = began() + b"".join(
            [
                job_read(1, "a", gpus=2, label="alice", time=5.0, timeout=9.0, priority=4),
                job_read(2, "b \udcff", timeout=9.0),
                *[job_read(number, "c") for number in (3, 4, 5, 6)],
                job_read(7, "d", gpus=0),
                job_ended(2, 3.0, "failed", code=1),
                job_ended(1, 2.5),
                job_ended(3, 1.0, "timed out"),
                job_ended(4, 1.0, "killed", code=9),
                job_ended(5, 1.0, "failed", code=1, final=False),
                job_ended(7, 1.0),
            ]
        )
        assert jobs_of(read_state(data)) == [
            WorkloadJob(1, 2.5, 2, "alice", 5, "a", 4),
            WorkloadJob(1, 3, 1, "", 9, "b \udcff", 0),
            WorkloadJob(1, 1, 1, "", None, "c", 0),  # which timed out
        ]

    def test_the_golden_journal_has_both_rows_and_history(self) -> None:
        data = GOLDEN.read_bytes()
        jobs = jobs_of(read_state(data))
        assert jobs
        succeeded = [each for each in read_state(data).jobs.values() if each.state == "succeeded"]
        expected = Counter(template_of(each.job.command.decode()) for each in succeeded)
        assert {template: len(runs) for template, runs in history_of([data]).history.items()} == expected
        assert sorted(each.length for each in succeeded) == sorted(chain(*history_of([data]).history.values()))

    def test_history_is_of_the_last_20_successes_the_oldest_first(self) -> None:
        lines = [job_read(number, f"t --seed {number}") + job_ended(number, number) for number in range(1, 31)]
        lines += [job_read(31, "t --seed 31"), job_ended(31, 99.0, "failed")]
        assert history_of([began() + b"".join(lines)]).history == {"t --seed …": [*range(11, 31)]}

    def test_jobs_of_different_runs_are_distinct_and_a_resumed_run_is_one(self) -> None:
        torn = job_ended(1, 7.0) + job_read(2, "b") + job_read(3, "b")
        resumed = began() + job_read(1, "a") + job_ended(1, 1.0) + job_read(2, "b")
        resumed += began(is_resumed=True) + job_ended(2, 2.0)
        newest = began() + job_ended(1, 8.0) + job_read(1, "c") + job_ended(1, 3.0) + job_ended(3, 8.0)
        assert history_of([torn, resumed, newest]).history == {"a": [1.0], "b": [2.0], "c": [3.0]}

    def test_peaks_are_those_of_the_newest_successes(self) -> None:
        lines = [job_read(number, f"t {number}") for number in range(1, 31)]
        lines += [job_measured(number, 1000 + number) + job_ended(number, 9.0) for number in range(1, 31)]
        assert peaks_in(*lines) == {"t …": [*range(1011, 1031)]}
        told = history_of([began() + b"".join(lines)])
        assert told.peaks is None, "nobody asked"
        assert told.history == history_of([began() + b"".join(lines)], with_peaks=True).history

    def test_a_peak_is_of_the_attempt_that_succeeded_and_of_all_its_gpus(self) -> None:
        read = job_read(1, "a") + job_read(2, "b", gpus=2)
        assert peaks_in(read, job_measured(1, 5), job_ended(1, 1.0, "failed"), job_ended(1, 2.0, attempt=2)) == {}
        again = job_measured(1, 5) + job_ended(1, 1.0, "failed", final=False) + job_measured(1, 7, attempt=2)
        assert peaks_in(read, again, job_ended(1, 2.0, attempt=2)) == {"a": [7]}
        assert peaks_in(read, job_measured(2, 5, 7), job_ended(2, 2.0)) == {"b": [7]}
        assert peaks_in(read, job_measured(2, 5), job_ended(2, 2.0)) == {}
        assert peaks_in(read, job_measured(1, 5, shared=3.5, of_gpu=["memory"]), job_ended(1, 2.0)) == {}
        assert peaks_in(read, job_measured(1, 5, shared=3.5, of_gpu=["energy"]), job_ended(1, 2.0)) == {"a": [5]}
        assert peaks_in(job_measured(1, 5), job_ended(1, 2.0)) == {}

    def test_what_is_torn_or_foreign_is_passed_over(self) -> None:
        foreign = [
            b"\xff\xfe\x00{[\n",
            b'{"event":"job read","job":[1],"command":"x"}\n',
            b'{"event":"job read","job":1,"command":7}\n',
            job_read(1, "good"),
            job_read(1, "torn")[:40] + job_read(2, "two"),
            job_ended({}, 1.0),
            job_ended(1, None),
            job_ended(1, "9"),
            job_ended(1, True),
            job_ended(1, float("nan")),
            job_ended(1, float("inf")),
            job_ended(1, -1.0),
            b'{"event":"job ended","job":1,"outcome":"succeeded","runtime":' + b"9" * 5000 + b"}\n",
            b'{"event":"job ended","outcome":"succeeded",' + b"[" * 100_000 + b"\n",
            job_ended(1, 4.0),
            job_ended(2, 5),
            job_ended(1, 6.0)[:-1],
        ]
        assert history_of([b"".join(foreign)]).history == {"good": [4.0], "two": [5]}

    @settings(deadline=None)
    @given(st.data())
    def test_a_journal_with_a_hole_in_it_never_raises_nor_tells_more(self, data) -> None:
        whole = GOLDEN.read_bytes()
        begin = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(begin, len(whole)))
        found = history_of([whole[:begin] + data.draw(st.binary(max_size=5)) + whole[end:]]).history
        assert sum(map(len, found.values())) <= sum(map(len, history_of([whole]).history.values()))


class TestSynthetic:
    def test_the_default_is_used_when_nothing_is_given(self) -> None:
        assert (
            parse_synthetic("") == Synthetic() == parse_synthetic(" jobs=1000  load=0.9 time=10-1000 gpus=1 users=0 ")
        )

    def test_all_words(self) -> None:
        found = parse_synthetic("jobs=20 gap=1m30s time=10-2h gpus=1*8,2*2,4 users=5")
        assert found == Synthetic(20, 90, 0.9, (10, 7200), ((1, 8), (2, 2), (4, 1)), 5)
        assert parse_synthetic("load=1.5").load == 1.5

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("jbos=3", "'jbos=3' is unknown; the keys are jobs=, gap=, load=, time=, gpus=, users="),
            ("jobs=3,gap=5", "jobs: '3,gap=5' is not a whole number"),
            ("jobs", "jobs: '' is not a whole number from 1 to 10,000,000"),
            ("jobs=0", "jobs: '0' is not a whole number"),
            ("jobs=999999999", "jobs: '999999999' is not"),
            ("jobs=1 jobs=2", "'jobs' is given twice"),
            ("gap=nan", "gap: 'nan' is not a duration; write 90"),
            ("gap=999999999999d", "gap: '999999999999d' is too long"),
            ("gap=1 load=1", "gap= and load= exclude each other"),
            ("load=0", "load: '0' is not a number above 0"),
            ("load=inf", "load: 'inf' is not"),
            ("time=10", "time: '10' is not LOW-HIGH; write 10-1000 or 1m-2h"),
            ("time=0-10", "time: '0-10' is not an ascending range above 0"),
            ("time=10-5", "time: '10-5' is not an ascending range"),
            ("time=a-b", "time: 'a' is not a duration"),
            ("gpus=", "gpus: '' is not a number of GPUs; write 1,2,4"),
            ("gpus=1,0", "gpus: '0' is not a number of GPUs"),
            ("gpus=1*0", r"gpus: '1\*0' is not"),
            ("users=-1", "users: '-1' is not a whole number \\(0 or more\\)"),
            ("\x1b[31m", r"'\\x1b\[31m' is unknown"),
        ],
    )
    def test_what_is_wrong_is_reported(self, text, problem) -> None:
        with pytest.raises(ValueError, match=problem):
            parse_synthetic(text)

    def test_the_same_seed_gives_the_same_and_another_gives_another(self) -> None:
        few = parse_synthetic("jobs=5 users=3 gpus=1,2")
        assert generate(few, 4, 7) == generate(few, 4, 7) != generate(few, 4, 8)
        bare = parse_synthetic("jobs=5 gap=25")
        wide = parse_synthetic("jobs=5 gap=25 users=3 gpus=1,2")
        assert [job[:2] for job in generate(bare, 4, 7)] == [job[:2] for job in generate(wide, 4, 7)]

    def test_the_published_queue_has_the_published_distribution(self) -> None:
        queues = [generate(parse_synthetic("jobs=20 gap=25s time=10-1000"), 2, seed) for seed in range(500)]
        assert all(len(queue) == 20 and queue[0].submit == 0 for queue in queues)
        assert mean(queue[-1].submit / 19 for queue in queues) == pytest.approx(25, rel=0.03)
        lengths = [log10(job.length) for queue in queues for job in queue]
        assert (min(lengths), max(lengths)) == pytest.approx((1, 3), abs=0.01)
        assert Counter(int(2 * length) for length in lengths if length < 3) == {
            part: pytest.approx(2500, rel=0.1) for part in (2, 3, 4, 5)
        }
        assert all(job.requested == job.length and job.gpus == 1 for queue in queues for job in queue)

    def test_a_load_is_that_share_of_the_gpus_without_those_too_wide(self) -> None:
        jobs = generate(parse_synthetic("jobs=50000 load=0.8 time=1-50 gpus=1*6,2*2,4,64 users=4"), 8, 1)
        work = sum(job.gpus * job.length for job in jobs if job.gpus <= 8)
        assert work / 8 / jobs[-1].submit == pytest.approx(0.8, rel=0.05)
        widths = Counter(job.gpus for job in jobs)
        assert {width: count / 5000 for width, count in widths.items()} == pytest.approx(
            {1: 6, 2: 2, 4: 1, 64: 1}, rel=0.1
        )
        assert {job.user for job in jobs} == {"u1", "u2", "u3", "u4"}

    def test_all_at_once_and_all_alike(self) -> None:
        assert generate(parse_synthetic("jobs=2 gap=0 time=1m-1m"), 1, 1) == [WorkloadJob(0, 60, requested=60)] * 2
        same = generate(parse_synthetic("jobs=20000 time=1m-1m"), 4, 1)
        assert same[-1].submit / 19_999 == pytest.approx(60 / 4 / 0.9, rel=0.05)

    @settings(deadline=None)
    @given(st.text(max_size=40) | st.lists(st.sampled_from(["jobs=3", "gap=", "1", "time=", "-", "gpus=", " ", "*"])))
    def test_any_words_are_understood_or_refused(self, words) -> None:
        jobs, refusal = jobs_or_refusal(lambda text: (generate(parse_synthetic(text), 2, 1), []), "".join(words))
        assert bool(jobs) != bool(refusal)
        assert [job.submit for job in jobs] == sorted(job.submit for job in jobs)
