"""What `lease()` returns: how long it holds its GPUs, several in one process, threads and forked children."""

import json
import os
import re
import signal
import sys
import textwrap

import pytest

from tests.conftest import Program, until
from tests.support.leased import Python, end, has_line, is_free, python_programs  # noqa: F401
from tests.support.nvml import a_gpu
from tests.support.sharing import in_line, is_leased

pytestmark = pytest.mark.usefixtures("idle_gpus")

# What a program says of its GPUs: what it sees, and for each GPU whether it is leased, as the kernel knows.
SAY = """
import fcntl, gc
LEASES = {leases}
def is_leased(gpu):
    try: file = open(os.path.join(os.environ["SGS_LEASE_DIR"], LEASES[gpu]))
    except FileNotFoundError: return False
    with file:
        try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError: return True
    return False
def say(*more):
    held = [gpu for gpu in range(4) if is_leased(gpu)]
    print(json.dumps([os.environ.get("CUDA_VISIBLE_DEVICES"), held, *more]), flush=True)
"""


def program_of(code: str) -> str:
    return SAY.format(leases=[a_gpu(index).uuid for index in range(4)]) + textwrap.dedent(code)


def said_by(python: Python, code: str, **env: str) -> tuple[list[list[object]], str]:
    measured = {} if env else {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    out, err = python.run(program_of(code), **env, **measured)
    return [json.loads(line) for line in out.splitlines()], err


def test_it_holds_from_its_creation_until_it_is_released_once_or_more(python: Python) -> None:
    code = """
        say()
        lease_of_two = lease(2)
        gc.collect()
        say(lease_of_two.gpus, repr(lease_of_two))
        subprocess.run(["sh", "-c", 'echo "[\\\\"$CUDA_VISIBLE_DEVICES\\\\"]"'])
        lease_of_two.release()
        say(repr(lease_of_two))
        lease_of_two.release()
        try:
            with lease_of_two: say("not reached")
        except UserError as error: say(str(error))
        with lease(gpus=[3]) as gpus: say(gpus)
        say()
    """
    said, err = said_by(python, code, CUDA_VISIBLE_DEVICES="3,1,0", PYTHONWARNINGS="error")
    where = re.escape(f"{python.directory}/program0.py:") + r"\d+"
    assert err == ""
    first, held, in_a_child, released, refused, within, last = said
    assert first == last == ["3,1,0", []]
    assert held[:3] == ["3,1", [1, 3], ["3", "1"]]
    assert re.fullmatch(rf"<lease of gpus 3,1 \({where}\)>", str(held[3]))
    assert in_a_child == ["3,1"]
    assert re.fullmatch(rf"<released lease of gpus 3,1 \({where}\)>", str(released[2]))
    assert re.fullmatch(r"the lease of .* has been released; call lease\(\) again", str(refused[2]))
    assert released[:2] == refused[:2] == ["3,1,0", []]
    assert within == ["3", [3], ["3"]]


@pytest.mark.parametrize(
    "drop",
    ["lease(gpus=[1])", "lease(gpus=[1]).__enter__()", "a = lease(gpus=[1]); a.itself = a; del a; gc.collect()"],
)
def test_dropped_it_warns_and_goes_on_holding(python: Python, program: Program, drop: str) -> None:
    code = f"""
        {drop}
        say()
        print("in use", file=sys.stderr, flush=True)
        input()
    """
    process = python.start(program_of(code), PYTHONWARNINGS="always")
    assert json.loads(has_line(process)) == ["1", [1]]
    assert process.stderr
    warning, source, in_use = [process.stderr.readline() for _ in range(3)]
    where = r"\S+/program0\.py:" + warning.split(":")[1]
    text = r"was dropped without release\(\); the GPUs stay leased until this process ends\. .*"
    assert re.fullmatch(rf"{where}: ResourceWarning: the lease of gpu 1 \({where}\) {text}\n", warning)
    assert (source.strip(), in_use) == (drop, "in use\n")
    assert not is_free(program, "1")
    assert process.communicate("\n", timeout=120) == ("", "")
    assert is_free(program, "1")


@pytest.mark.parametrize(
    "code",
    [
        "held = lease()",
        "held = [lease() for _ in range(5)]",
        "import builtins; builtins.held = lease()",
        "held = lease(); held.itself = held",
        "threading.held = lease()",
        "def main():\n    held = lease()\n    os._exit(0)\nmain()",
        "def wait(held): threading.Event().wait()\nthreading.Thread(target=wait, args=[lease()], daemon=True).start()",
        "held = lease()\nos.kill(os.getpid(), 9)",
    ],
)
def test_the_end_of_the_process_is_a_quiet_end_of_its_leases(python: Python, program: Program, code: str) -> None:
    assert python.run(f"{code}\n", PYTHONWARNINGS="always") == ("", "")
    assert is_free(program)


def test_leases_of_one_process_may_end_in_any_order(python: Python) -> None:
    code = """
        first, second, third = lease(gpus=[0]), lease(gpus=[1]), lease(gpus=[2])
        for each in second, first, third:
            say()
            each.release()
        say()
    """
    assert said_by(python, code) == ([["2", [0, 1, 2]], ["2", [0, 2]], ["2", [2]], [None, []]], "")


def test_a_gpu_is_leased_until_the_last_lease_of_this_process_for_it_has_ended(python: Python) -> None:
    code = """
        os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"
        outer = lease(2)
        with outer:
            inner = lease()
            say(inner.gpus)
        say()
        again = lease()
        inner.release()
        say(again.gpus)
        again.release()
        say()
    """
    shared: list[list[object]] = [["2", [2, 3], ["2"]], ["2", [2]], ["2", [2], ["2"]], ["2,3", []]]
    assert said_by(python, code) == (shared, "")


def test_a_gpu_that_only_a_released_lease_had_is_free_for_this_process_too(python: Python) -> None:
    code = """
        first, second = lease(3), lease(gpus=[1])
        third = lease(gpus=[1])
        first.release()
        say()
        other = lease(gpus=[0])
        second.release()
        say()
        other.release()
        say()
        third.release()
        first.release()
        say()
    """
    assert said_by(python, code) == ([["1", [1]], ["0", [0, 1]], ["1", [1]], [None, []]], "")


def test_at_a_prompt_a_release_ends_earlier_leases_of_the_same_gpus_too(python: Python) -> None:
    """As in a notebook, whose cell `gpus = lease()` is run again."""
    code = """
        sys.ps1 = ">>> "
        other = lease(gpus=[3])
        gpus = shown = lease(2, gpus=[0, 1])
        for attempt in range(3):
            gpus = lease(2, gpus=[0, 1])
            say(gpus.gpus)
        with lease(gpus=[0]): pass
        say()
        gpus.release()
        say(repr(shown).split()[0])
        other.release()
        say()
    """
    held: list[list[object]] = [["0,1", [0, 1, 3], ["0", "1"]]] * 3 + [["0,1", [0, 1, 3]]]
    assert said_by(python, code, PYTHONWARNINGS="error") == ([*held, ["3", [3], "<released"], [None, []]], "")


def test_in_a_program_a_lease_within_another_one_leaves_that_alone(python: Python) -> None:
    code = """
        first = lease()
        lease().release()
        say()
        try: lease(2)
        except UserError as error: say(str(error).split("(")[0], str(error).partition(": ")[2])
    """
    said, err = said_by(python, code, PYTHONWARNINGS="error")
    too_many = "2 GPUs were requested, but there are only 1; this process already has the lease of gpu 0 "
    assert said == [["0", [0]], ["0", [0], too_many, "release() it first"]]
    assert err == ""


def test_a_lease_that_fails_inside_another_changes_nothing(python: Python) -> None:
    holder = python.hold("gpus=[1]")
    code = """
        with lease(gpus=[0]):
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
            try: lease(gpus=[1], timeout=0)
            except LeaseTimeout: say()
        say()
        os.environ["CUDA_VISIBLE_DEVICES"] = "3"
        try: lease(gpus=[1], timeout=0)
        except LeaseTimeout: say()
    """
    assert said_by(python, code) == ([["", [0, 1]], [None, [1]], ["3", [1]]], "")
    end(holder)


def test_a_lease_whose_files_cannot_all_be_opened_leaves_none_open(python: Python) -> None:
    code = """
        import resource
        lease().release()
        fds = len(os.listdir("/proc/self/fd"))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (fds + 5, hard))
        try: lease(2, gpus=[0, 1, 2, 3])
        except UserError as error: failed = str(error)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        say(len(os.listdir("/proc/self/fd")) - fds, failed)
    """
    ((_, held, more, failed),), _ = said_by(python, code)
    assert (held, more) == ([], 0)
    assert "Too many open files" in str(failed)


def test_a_second_thread_is_refused_while_another_one_has_or_awaits_a_lease(python: Python) -> None:
    holder = python.hold("gpus=[1]")
    code = """
        def also():
            try:
                with lease() as gpus: say(gpus)
            except UserError as error: say(str(error))
        def other():
            thread = threading.Thread(target=also)
            thread.start()
            thread.join()
        with lease(gpus=[0]): other()
        other()
        waiter = threading.Thread(target=lambda: lease(gpus=[1], timeout="1h").release(), name="waiter")
        waiter.start()
        input()
        also()
        input()
        waiter.join()
        say()
    """
    process = python.start(program_of(code))
    refused, got = json.loads(has_line(process)), json.loads(has_line(process))
    lease_it = "the threads of a process share one CUDA_VISIBLE_DEVICES; lease the GPUs of all threads at once"
    sentence = rf"another thread \(MainThread\) holds the lease of gpu 0 \(\S+:\d+\), and {lease_it}, .*"
    assert refused[:2] == ["0", [0, 1]]
    assert re.fullmatch(sentence, refused[2])
    assert got == ["0", [0, 1], ["0"]]
    until(lambda: in_line(a_gpu(1).uuid) == 1)
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()
    waiting = json.loads(has_line(process))
    assert waiting[:2] == [None, [1]]
    assert re.fullmatch(rf"another thread \(waiter\) waits for GPUs \(\S+:\d+\), and {lease_it}, .*", waiting[2])
    end(holder)
    assert process.communicate("\n", timeout=120) == ("[null, []]\n", "")


def test_any_thread_may_release_a_lease(python: Python) -> None:
    code = """
        held = lease()
        thread = threading.Thread(target=held.release)
        thread.start()
        thread.join()
        say()
    """
    assert said_by(python, code) == ([[None, []]], "")


def test_a_forked_child_neither_releases_nor_warns_nor_changes_its_environment(python: Python) -> None:
    code = """
        held = lease(gpus=[1])
        def child(action):
            if os.fork() == 0:
                action()
                gc.collect()
                say()
                os._exit(0)
            os.wait()
        def drop():
            global held
            del held
        def use():
            with held: pass
        def lease_again():
            with lease(gpus=[1], timeout=60) as gpus: say(gpus)
        for action in drop, held.release, use, lease_again: child(action)
        held.release()
        say()
        child(held.release)
    """
    still, free = ["1", [1]], [None, []]
    said, err = said_by(python, code, PYTHONWARNINGS="error")
    assert (said, err) == ([still, still, still, ["1", [1], ["1"]], still, free, free], "")


def test_workers_of_multiprocessing_keep_their_parents_lease_and_end_quietly(python: Python) -> None:
    code = """
        import multiprocessing
        def work(number): return os.environ["CUDA_VISIBLE_DEVICES"]
        held = lease(gpus=[2])
        with multiprocessing.get_context("fork").Pool(2) as pool: seen = set(pool.map(work, range(8)))
        say(*seen)
        held.release()
    """
    assert said_by(python, code, PYTHONWARNINGS="always::ResourceWarning") == ([["2", [2], "2"]], "")


def test_a_child_that_was_forked_keeps_the_lease_of_a_killed_parent(python: Python, program: Program) -> None:
    code = """
        held = lease(gpus=[0])
        if os.fork() == 0:
            print("here", flush=True)
            time.sleep(1000)
    """
    process = python.start(f"os.setsid()\n{textwrap.dedent(code)}\nos.wait()\n")
    has_line(process)
    process.kill()
    process.wait(timeout=120)
    try:
        assert is_leased(a_gpu(0).uuid)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    until(lambda: not is_leased(a_gpu(0).uuid))
    assert is_free(program)


def test_an_interrupted_wait_leaves_nothing(python: Python) -> None:
    holder = python.hold("gpus=[0]")
    code = """
        try: gpus = lease(2, gpus=[0, 1], timeout="1h")
        except KeyboardInterrupt: say("gpus" in globals())
        thread = threading.Thread(target=lambda: lease(gpus=[1]).release())
        thread.start()
        thread.join()
        say()
    """
    process = python.start(program_of(code))
    until(lambda: in_line(a_gpu(0).uuid) == 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert [json.loads(line) for line in out.splitlines()] == [[None, [0], False], [None, [0]]]
    assert err == ""
    end(holder)


def test_a_signals_handler_may_release_it(python: Python) -> None:
    code = """
        held = lease()
        signal.signal(signal.SIGTERM, lambda *_: (held.release(), say(), sys.exit(7)))
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(100)
    """
    assert said_by(python, code) == ([[None, []]], "")


def test_inside_a_job_it_ends_before_the_job_without_freeing_its_gpu(python: Python, program: Program) -> None:
    code = """
        held = lease(timeout=60)
        say(held.gpus)
        held.release()
        say()
    """
    (python.directory / "job.py").write_text("import json, os\nfrom simple_gpu_scheduler import *\n" + program_of(code))
    done = program.run("--gpus", "2", "-q", stdin=f"{sys.executable} job.py\n")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [["2", [2], ["2"]], ["2", [2]]]
    assert done.stderr == b""
