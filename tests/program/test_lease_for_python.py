"""`lease()`: real Python programs that want GPUs, beside each other and beside the command."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, UNMEASURED, Program, until
from tests.support.leased import HEAD, HOLD, Python, end, has_line, is_free, python_programs  # noqa: F401
from tests.support.nvml import GIB, MIB, Process, StandIn, a_gpu

pytestmark = pytest.mark.usefixtures("idle_gpus")

CUDA = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
NEVER_LOOKS = "from simple_gpu_scheduler.gpus import pool\npool._FIRST_PAUSE = pool._LONGEST_PAUSE = 3600.0\n"


def is_in_line(process: "subprocess.Popen[str]") -> bool:
    """Whether it waits for a lock: the kernel lists waiting processes after an arrow."""
    waits = [line for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
    return any(line.split()[5] == str(process.pid) for line in waits)


def test_the_package_loads_next_to_nothing_and_lease_loads_no_library(python: Python) -> None:
    code = """
        libraries = {"click", "rich", "pynvml", "simple_gpu_scheduler.api", "multiprocessing", "subprocess"}
        print(sorted(libraries & seen), sorted({"click", "rich", "pynvml", "logging"} & sys.modules.keys()))
    """
    code = f"import sys, simple_gpu_scheduler\nseen = set(sys.modules)\n{HEAD}{textwrap.dedent(code)}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=UNMEASURED)
    assert done.stdout == "[] []\n"

    code = "import sys; before = {*sys.modules}; import simple_gpu_scheduler; print(len({*sys.modules} - before))"
    assert int(subprocess.check_output([sys.executable, "-c", code], cwd=python.directory, env=UNMEASURED)) < 50


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ({}, ["0,1", "PCI_BUS_ID"]),
        ({"CUDA_VISIBLE_DEVICES": "3,1,0"}, ["3,1", "PCI_BUS_ID"]),
        (
            {"CUDA_VISIBLE_DEVICES": a_gpu(2).uuid + "," + a_gpu(1).uuid, "CUDA_DEVICE_ORDER": "FASTEST_FIRST"},
            [f"{a_gpu(2).uuid},{a_gpu(1).uuid}", "FASTEST_FIRST"],
        ),
    ],
)
@pytest.mark.parametrize("body", ["pass", "1 / 0", "os.environ.clear()", "sys.exit()"])
def test_the_environment_is_that_of_the_lease_and_then_as_it_was(
    python: Python, before: dict[str, str], inside: list[str], body: str
) -> None:
    names = CUDA if "clear" in body else ()
    code = f"""
        before = dict(os.environ)
        try:
            with lease(2, timeout="30m") as gpus:
                print(json.dumps([",".join(gpus), *map(os.environ.get, {CUDA})]), flush=True)
                subprocess.run(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"])
                {body}
        except (ZeroDivisionError, SystemExit):
            pass
        print(all(os.environ.get(name) == before.get(name) for name in {names} or [*before, *os.environ]))
    """
    out, err = python.run(code, **before)
    shown, of_a_child, restored = out.splitlines()
    assert (json.loads(shown), of_a_child, restored, err) == ([inside[0], *inside], inside[0], "True", "")


def test_a_program_and_the_command_wait_for_each_other_and_are_woken_at_once(python: Python, program: Program) -> None:
    holder = python.hold()
    command = program.start("run", "--gpus", "0", "sh", "-c", "date +%s.%N; read go; echo $CUDA_VISIBLE_DEVICES")
    assert command.stderr
    assert command.stdout
    assert b"leased by" in command.stderr.readline()
    left = end(holder)
    assert float(command.stdout.readline()) - left < 0.25
    waiter = python.start("with lease(gpus=[0]) as gpus: print(time.time(), *gpus)")
    until(lambda: is_in_line(waiter))
    command.communicate(b"\n", timeout=120)
    left = time.time()
    got, gpu = waiter.communicate(timeout=120)[0].split()
    assert float(got) - left < 0.25
    assert gpu == "0"


def test_one_that_has_given_its_gpu_back_and_is_still_ending_is_no_neighbour_to_keep_a_distance_from(
    python: Python, program: Program, idle_gpus: StandIn
) -> None:
    holder = python.start(HOLD.format("gpus=[0]") + "input()\n")
    assert has_line(holder)
    idle_gpus.show([a_gpu(0, used=GIB, processes=[Process(holder.pid, GIB)])])
    command = program.start("run", "--gpus", "0", "true")
    assert command.stderr
    assert holder.stdin
    assert b"leased by" in command.stderr.readline()
    holder.stdin.write("\n")
    holder.stdin.flush()
    assert re.match(rb"waiting: gpu 0: \w+ \S+ 1.0 GiB for ", command.stderr.readline())
    holder.communicate("\n", timeout=120)
    idle_gpus.show([a_gpu(0)])
    assert (command.communicate(timeout=120)[1], command.returncode) == (b"", 0)


def test_a_scheduler_that_waited_for_two_gpus_leaves_the_other_one_to_others(python: Python, program: Program) -> None:
    first, second = python.hold("gpus=[0]"), python.hold("gpus=[1]")
    both = python.start(HOLD.format("gpus=[0, 1]"))
    until(lambda: is_in_line(both))
    end(first)
    assert has_line(both) == "0"
    end(second)
    until(lambda: is_free(program, "1"), "gpu 1 is free")
    end(both)


WORKERS = """
import multiprocessing
def work(number, barrier=None):
    with lease(timeout=60, gpus=range({gpus})) as (gpu,):
        os.close(os.open(f"busy-{{gpu}}", os.O_CREAT | os.O_EXCL))
        barrier and barrier.wait()
        os.unlink(f"busy-{{gpu}}")
        open("got", "a").write(gpu)
if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    barrier = context.Barrier(4) if {gpus} == 4 else None
    workers = [context.Process(target=work, args=(number, barrier)) for number in range(4)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    print([worker.exitcode for worker in workers], "".join(sorted(open("got").read())))
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize(("gpus", "expected"), [(4, "0123"), (2, "[01]{4}")])
def test_workers_have_a_gpu_each_or_take_turns(python: Python, method: str, gpus: int, expected: str) -> None:
    out, err = python.run(WORKERS.format(method=method, gpus=gpus))
    assert re.fullmatch(rf"\[0, 0, 0, 0\] {expected}\n", out), out + err


def test_a_forked_child_does_not_take_the_lease_from_its_parent(python: Python, program: Program) -> None:
    code = """
        parent = os.getpid()
        def child(ends):
            if os.fork() == 0: ends()
            else: os.wait()
        with lease(gpus=[0]):
            child(lambda: os._exit(0))
            child(lambda: sys.exit(0))
            if os.fork():
                os.wait()
                print("held", flush=True)
                input()
        if os.getpid() != parent: sys.exit(0)
        print("left", flush=True)
    """
    process = python.start(code)
    assert has_line(process) == "held"
    assert not is_free(program)
    assert process.communicate("\n", timeout=120) == ("left\n", "")
    assert is_free(program)


@pytest.mark.parametrize("body", ["pass", "1 / 0", "sys.exit(3)", "os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_the_gpu_is_free_after_every_end(python: Python, program: Program, body: str) -> None:
    assert python.run(f"with lease(gpus=[0]) as gpus:\n    print(*gpus, flush=True)\n    {body}")[0] == "0\n"
    assert is_free(program)


def test_it_works_again_and_again_in_any_thread_and_leaves_nothing_behind(python: Python) -> None:
    code = """
        def often():
            for number in range(200):
                with lease(2): pass
        often()
        before = threading.active_count(), len(os.listdir("/proc/self/fd"))
        thread = threading.Thread(target=often)
        thread.start()
        thread.join()
        print((threading.active_count(), len(os.listdir("/proc/self/fd"))) == before)
    """
    assert python.run(code) == ("True\n", "")


def test_giving_up_again_and_again_collects_neither_threads_nor_files(python: Python) -> None:
    holder = python.hold("4")
    code = """
        def used(): return threading.active_count() + len(os.listdir("/proc/self/fd"))
        before = used()
        for number in range(40):
            try:
                with lease(timeout=0 if number % 2 else 0.01): pass
            except LeaseTimeout: pass
        print(used() - before)
    """
    assert int(python.run(code)[0]) < 40
    end(holder)


def test_a_caller_that_has_given_up_keeps_no_other_waiting(python: Python, program: Program) -> None:
    holder = python.hold()
    gives_up = """
        try:
            with lease(gpus=[0], timeout="{}"): pass
        except (LeaseTimeout, KeyboardInterrupt) as error:
            print(type(error).__name__, flush=True)
            input()
    """
    late = python.start(gives_up.format("0.2s"))
    assert has_line(late) == "LeaseTimeout"
    interrupted = python.start(gives_up.format("1h"))
    until(lambda: is_in_line(interrupted))
    interrupted.send_signal(signal.SIGINT)
    assert has_line(interrupted) == "KeyboardInterrupt"
    # It never looks again of its own accord: only its place in the line can wake it.
    waiter = python.start(f"{NEVER_LOOKS}{HOLD.format('gpus=[0]')}")
    until(lambda: is_in_line(waiter))
    end(holder)
    assert select.select([waiter.stdout], [], [], 120)[0], "it was woken"
    assert has_line(waiter) == "0"
    end(waiter)
    assert is_free(program)
    assert late.poll() is interrupted.poll() is None


def test_a_time_out_names_the_users_of_the_gpus(python: Python, idle_gpus: StandIn) -> None:
    code = """
        for more in {"timeout": 0}, {"timeout": 0.2}, {"timeout": "0.2s"}, {"timeout": 0, "free_memory": "80G"}:
            try:
                with lease(gpus=[0], **more): print("not reached")
            except TimeoutError as error: print(type(error) is LeaseTimeout, error)
    """
    holder = python.hold()
    said = rf"(True .*: gpu 0: leased by \w+ \(pid {holder.pid}, lease\(\)\) for \S+ s\n){{4}}"
    assert re.fullmatch(said, out := python.run(code)[0]), out
    end(holder)
    idle_gpus.show([a_gpu(0, used=GIB, processes=[Process(os.getpid(), GIB)])])
    said = r"(True .*: gpu 0: \w+ \S+ 1\.0 GiB for .* \(yours; to share the GPU: share_with='me'\)\n){4}"
    assert re.fullmatch(said, out := python.run(code)[0]), out
    assert python.run("with lease(timeout=0, ignore_occupancy=True) as gpus: print(*gpus)") == ("0\n", "")
    idle_gpus.show([a_gpu(0, used=100 * MIB)])
    code = "try:\n    with lease(timeout=0, free_memory='80G'): pass\nexcept LeaseTimeout as error: print(error)"
    assert re.search(r"gpu 0: 79\.9 GiB free, less than the", out := python.run(code)[0]), out


def test_a_lease_that_waits_says_why_once_to_a_logger_whose_warnings_go_to_stderr(python: Python) -> None:
    holder = python.hold()
    said = rf"lease\(\) waits: gpu 0: leased by \w+ \(pid {holder.pid}, lease\(\)\) for \S+ s\n"
    patiently = "try:\n    with lease(gpus=[0], timeout=4): pass\nexcept LeaseTimeout: pass\n"
    loud, silent, own = (
        python.start(setting + patiently)
        for setting in (
            "",
            "import logging\nlogging.getLogger('simple_gpu_scheduler').setLevel('ERROR')\n",
            "import logging\nlogging.basicConfig(stream=sys.stdout, format='%(levelname)s %(name)s %(message)s')\n",
        )
    )
    out, complaint = loud.communicate(timeout=120)
    assert re.fullmatch(said, complaint), complaint
    assert (out, *silent.communicate(timeout=120)) == ("", "", "")
    out, complaint = own.communicate(timeout=120)
    assert re.fullmatch(f"WARNING simple_gpu_scheduler {said}", out), out
    assert complaint == ""
    end(holder)
    assert python.run("with lease(gpus=[0]): print('logging' in sys.modules)") == ("False\n", ""), "if it never waits"


@pytest.mark.parametrize("more", ["gpus=[0]", "gpus=[0], ignore_occupancy=True", "ignore_occupancy=True"])
def test_however_a_gpu_is_named_and_looked_at_its_lease_is_the_same(
    python: Python, program: Program, more: str
) -> None:
    holder = python.hold(more)
    assert not is_free(program)
    assert program.run("run", "--no-wait", "--gpus", "0", "--ignore-occupancy", "true").returncode == 75
    end(holder)


@pytest.mark.parametrize(
    ("arguments", "gpus"),
    [
        ("gpus=[1, 2]", ("1",)),
        ("2, gpus=[2, 1]", ("2", "1")),
        ("gpus='2-3'", ("2",)),
        ("gpus='13'", None),
        ("gpus=3", ("3",)),
        ("gpus='GPU-00000002'", (a_gpu(2).uuid,)),
        ("gpus=['GPU-00000002']", (a_gpu(2).uuid,)),
        ("2, gpus=['all']", ("0", "1")),
        ("gpus=(str(number) for number in (3, 2))", ("3",)),
        ("free_memory='10G', share_with=['me']", ("0",)),
        ("share_with='me'", ("0",)),
    ],
)
def test_one_may_choose_among_gpus(python: Python, arguments: str, gpus: tuple[str, ...] | None) -> None:
    out, err = python.run(f"with lease({arguments}) as gpus: print(gpus)")
    assert out == (f"{gpus}\n" if gpus else ""), err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("0", "ValueError: 0 is not a number of GPUs \\(1 or more\\)"),
        ("'x'", "ValueError: 'x' is not a number of GPUs \\(1 or more\\)"),
        ("gpus=[]", "ValueError: gpus is empty; leave it out to use all"),
        ("gpus=['x']", "ValueError: 'x' is not a GPU; use an index"),
        ("gpus=[0, 0]", "ValueError: GPU 0 is given twice"),
        ("gpus=[99]", "UserError: gpus: there is no GPU 99; there are 0 "),
        ("5", "UserError: 5 GPUs were requested, but there are only 4"),
        ("timeout='soon'", "ValueError: 'soon' is not a duration; write 90, 90s, 5m, 1h30m or 2d"),
        ("timeout=float('nan')", "ValueError: .*"),
        ("free_memory='much'", "ValueError: 'much' is not a size; write 512M or 10G"),
        ("share_with=['nobody-here']", "ValueError: there is no user 'nobody-here'"),
    ],
)
def test_what_cannot_be_done_is_a_clear_error(python: Python, arguments: str, error: str) -> None:
    out, err = python.run(
        f"with lease(4): pass\ntry:\n    with lease({arguments}): print('not reached')\nfinally: print('end')"
    )
    assert out == "end\n"
    assert re.match(rf"(simple_gpu_scheduler\.[\w.]+\.)?{error}", err.splitlines()[-1]), err
    assert "--" not in err.splitlines()[-1]


def test_without_nvml_it_says_what_to_write_and_then_works_with_a_warning(python: Python) -> None:
    error = python.run("with lease(): pass", LD_LIBRARY_PATH="")[1].splitlines()[-1]
    assert re.fullmatch(r"simple_gpu_scheduler\.base\.errors\.UserError: NVML .* for example: gpus=\[0, 1\]", error)
    code = "def main():\n    with lease(gpus=[1]) as gpus: print(*gpus)\nmain()\n"
    out, err = python.run(code, LD_LIBRARY_PATH="")
    assert out == "1\n"
    assert re.match(r"\S+/program1\.py:4: RuntimeWarning: NVML was not found .* is not checked\n", err), err
    assert "with lease(gpus=[1])" in err


_CONTEXT = "class Context: _initialized = {}\ndef context_safe(): return Context()"
STUBS = {
    "torch": ("torch/__init__.py", "class cuda: is_initialized = staticmethod(lambda: {})"),
    "jax": ("jax/_src/xla_bridge.py", "def backends_are_initialized(): return {}"),
    "tensorflow": ("tensorflow/python/eager/context.py", _CONTEXT),
}


@pytest.mark.parametrize("name", STUBS)
@pytest.mark.parametrize("is_late", [True, False])
def test_it_warns_when_cuda_is_in_use_already(python: Python, name: str, is_late: bool) -> None:
    path, text = STUBS[name]
    file = python.directory / path
    file.parent.mkdir(parents=True)
    file.write_text(text.format(is_late))
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    out, err = python.run(f"import {module}\nwith lease() as gpus: print(*gpus)")
    assert out == "0\n"
    warning = rf"\S+/program0\.py:4: RuntimeWarning: {name} has already initialised CUDA, .*call lease\(\) first\n"
    assert bool(re.match(warning, err)) == is_late, err
    assert is_late or not err


@pytest.mark.parametrize("module", ["None", "types.ModuleType('torch')"])
def test_a_framework_that_cannot_be_asked_is_no_error(python: Python, module: str) -> None:
    code = "import types\nsys.modules['torch'] = sys.modules['jax'] = sys.modules['tensorflow'] = {}\n"
    assert python.run(code.format(module) + "with lease() as gpus: print(*gpus)") == ("0\n", "")


def test_a_lease_inside_a_job_has_the_jobs_gpu_at_once(python: Python, program: Program) -> None:
    (python.directory / "job.py").write_text(f"{HEAD}with lease(timeout=60) as gpus: print(*gpus)")
    done = program.run("--gpus", "2", "-q", stdin=f"{sys.executable} job.py\n")
    assert (done.stdout, done.stderr) == (b"2\n", b"")


@pytest.mark.parametrize("uses_it", [False, True])
def test_what_runs_inside_a_lease_has_its_gpus(python: Python, idle_gpus: StandIn, uses_it: bool) -> None:
    code = f"""
        with lease(gpus=[3]):
            print(flush=True)
            input()
            job = b"echo $CUDA_VISIBLE_DEVICES"
            print(subprocess.run({SCHEDULER} + ["-q"], input=job, capture_output=True, timeout=120))
            if os.fork() == 0:
                with lease(timeout=60) as gpus: print("forked", *gpus, flush=True)
                os._exit(0)
            os.wait()
    """
    process = python.start(code)
    has_line(process)
    processes = [Process(process.pid, GIB)] if uses_it else []
    idle_gpus.show([a_gpu(index, processes=processes, used=GIB * uses_it) for index in range(4)])
    out, err = process.communicate("\n", timeout=120)
    assert "stdout=b'3\\n', stderr=b''" in out, err
    assert "forked 3" in out


def test_it_is_typed(python: Python) -> None:
    typed = """
        from simple_gpu_scheduler import GpuLease, LeaseTimeout, lease
        try:
            with lease(2, timeout="30m", gpus=[0, "GPU-1"]) as gpus:
                reveal_type(gpus)
            held: GpuLease = lease()
            reveal_type(held.gpus)
        except LeaseTimeout as error:
            timeout: TimeoutError = error
        lease("1")
    """
    (python.directory / "typed.py").write_text(textwrap.dedent(typed))
    argv = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "typed.py"]
    out = subprocess.run(argv, cwd=python.directory, capture_output=True, text=True, check=False).stdout
    assert out.replace("builtins.", "").count('Revealed type is "tuple[str, ...]"') == 2
    assert 'typed.py:10: error: Argument 1 to "lease" has incompatible type "str"; expected "int"' in out
    assert "Found 1 error" in out
