"""Whether tests/unit notices small changes of the code: `python -m tests.support.mutants --seed 1 --count 100`.

Each mutant is one change at a random place of the pure rooms, in a copy of the checkout. Only the tests that run the
changed statement are tried, the quickest of its own room first, until one fails. What no test notices is printed; it is
equivalent, or a test is missing.
"""

import argparse
import ast
import copy
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).parents[2]
PACKAGE = "simple_gpu_scheduler"
PURE = (
    *("base/*.py", "events/*.py", "jobfile/*.py", "measurements/*.py", "scheduling/**/*.py", "run/[!_mo]*.py"),
    *("gpus/occupancy.py", "resume/unfinished_jobs.py", "joblog/resume.py"),
)
OPPOSITE: Mapping[type, type] = {
    new: old
    for one, other in (
        *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
        *((ast.And, ast.Or), (ast.Add, ast.Sub)),
    )
    for old, new in ((one, other), (other, one))
}
_FIRST = 30  # tests, for which few files have to be loaded; most mutants are noticed by them
_WRONG_PACKAGE = 99
_NOT_NOTICED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
_MOST_MEMORY = 4 * 2**30


Seconds = Mapping[str, float]  # of each test
Lines = Mapping[str, Mapping[str, Sequence[str]]]  # of each file, and the tests that run each


class Mutant(NamedTuple):
    """`new` instead of the bytes from `start` to `end`, in the statement on these lines; no lines if imports run it."""

    path: str
    start: int
    end: int
    new: str
    lines: range

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def show(self, source: bytes) -> str:
        first, last = source.rfind(b"\n", 0, self.start) + 1, source.find(b"\n", self.end)
        before, after = source[first:last].decode(), self.apply(source[: self.end])[first:] + source[self.end : last]
        line = source.count(b"\n", 0, self.start) + 1
        return f"{self.path}:{line}\n  - {before.strip()}\n  + {after.decode().strip()}"


def changes(node: ast.AST) -> Iterator[tuple[ast.stmt | ast.expr, str]]:  # noqa: C901 - a table
    """What may be changed of one node: which node to replace, and by what."""
    match node:
        case ast.Compare():
            for at, each in enumerate(node.ops):
                new = copy.deepcopy(node)
                new.ops[at] = OPPOSITE[type(each)]()
                yield node, f"({ast.unparse(new)})"
        case ast.BoolOp() | ast.BinOp(op=ast.Add() | ast.Sub()):
            other = copy.copy(node)
            other.op = OPPOSITE[type(node.op)]()
            yield node, f"({ast.unparse(other)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.UnaryOp):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.comprehension(ifs=ifs):
            yield from ((test, f"(not ({ast.unparse(test)}))") for test in ifs)
        case ast.Expr(value=ast.Call()):
            yield node, "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield node, "return None"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from ((node, repr(value + by)) for by in (1, -1))


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """All that there are of a file."""
    starts = [0, *(at + 1 for at, byte in enumerate(source) if byte == 10)]

    def walk(node: ast.AST, lines: range, *, is_inside: bool) -> Iterator[Mutant]:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            return  # where the parts of a text begin is not always known
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
            lines = range(node.lineno, max(last, node.lineno + 1)) if is_inside else range(0)
        for old, new in changes(node):
            first = starts[old.lineno - 1] + old.col_offset
            end = starts[(old.end_lineno or old.lineno) - 1] + (old.end_col_offset or 0)
            yield Mutant(path, first, end, new, lines)
        inside = node.body if isinstance(node, ast.FunctionDef) else ()
        for child in ast.iter_child_nodes(node):
            yield from walk(child, lines, is_inside=is_inside or child in inside)

    yield from walk(ast.parse(source), range(0), is_inside=False)


class Recorder:
    """A plugin of pytest that finds out which lines each test runs, and how long it takes."""

    def __init__(self, measuring: Coverage) -> None:
        self.measuring = measuring
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.measuring.switch_context(item.nodeid)
        before = time.process_time()
        done = yield
        self.seconds[item.nodeid] = time.process_time() - before
        return done


class Chosen:
    """A plugin of pytest that runs some tests in an order, and none for ever."""

    def __init__(self, seconds: Seconds) -> None:
        self.seconds = seconds

    def pytest_sessionstart(self) -> None:
        phases = (Phase.explicit, Phase.generate)  # that a test fails is all that is asked
        checks = [HealthCheck.too_slow]
        settings.register_profile(
            "mutants", deadline=None, derandomize=True, database=None, phases=phases, suppress_health_check=checks
        )
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {test: at for at, test in enumerate(self.seconds)}
        items[:] = sorted((each for each in items if each.nodeid in place), key=lambda each: place[each.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        usual = self.seconds[item.nodeid]
        signal.setitimer(signal.ITIMER_PROF, 3 + 10 * usual)  # ends the process
        signal.alarm(int(30 + 50 * usual))  # has the test fail: see conftest.py
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def run_tests(directory: Path, arguments: Sequence[str], plugin: object) -> int:
    """In this process, with the package of that directory and no other."""
    os.setsid()
    os.chdir(directory)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    sys.path[:] = [str(directory), *(each for each in sys.path if Path(each).resolve() != ROOT)]
    os.environ["PYTHONPATH"] = str(directory)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    with (directory / "output.txt").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    settled = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # Hypothesis is loaded already; the sockets of a scheduler and its keeper are closed by the end of their processes.
    settled += [
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        "-W",
        "ignore:unclosed <socket object:ResourceWarning",
    ]
    code = pytest.main([*settled, *arguments], plugins=[plugin])
    package = sys.modules.get(PACKAGE)
    return code if package is None or Path(package.__file__ or "").is_relative_to(directory) else _WRONG_PACKAGE


def record(directory: Path, tests: Sequence[str], kept: Path) -> None:
    """Which lines each test runs, to a file."""
    measuring = Coverage(data_file=None, config_file=False, source=[str(directory / PACKAGE)], messages=False)
    measuring.start()
    recorder = Recorder(measuring)
    code = run_tests(directory, tests, recorder)
    measuring.stop()
    data = measuring.get_data()
    lines = {str(Path(name).relative_to(directory)): data.contexts_by_lineno(name) for name in data.measured_files()}
    if code == 0:
        kept.write_text(json.dumps([recorder.seconds, lines]))
    sys.exit(code)


def notice(directory: Path, seconds: Seconds) -> None:
    """Run these tests in this order until one fails."""
    sys.dont_write_bytecode = True
    files = dict.fromkeys(test.partition("::")[0] for test in seconds)
    sys.exit(run_tests(directory, ["-x", *files], Chosen(seconds)))


def in_child(action: Any) -> int:
    """Its exit code. pytest and Hypothesis are loaded already."""
    child = multiprocessing.get_context("fork").Process(target=action)
    child.start()
    child.join(1800)
    if child.is_alive():
        child.kill()
        child.join()
    assert child.exitcode not in (None, _WRONG_PACKAGE), "the tests took the package from somewhere else"
    return child.exitcode


def recorded(directory: Path, tests: Sequence[str], kept: Path) -> tuple[Seconds, Lines]:
    """How long each test takes, and which lines it runs. All must pass, also in the way in which mutants are tried."""
    if not kept.exists():
        code = in_child(partial(record, directory, tests, kept))
        if code == 0:
            code = in_child(partial(notice, directory, json.loads(kept.read_text())[0]))
        if code != 0:
            kept.unlink(missing_ok=True)
            sys.exit(f"the tests must pass without a mutant:\n{(directory / 'output.txt').read_text()}")
    seconds, lines = json.loads(kept.read_text())
    return seconds, lines


def order(mutant: Mutant, seconds: Seconds, lines: Lines) -> list[str]:
    """The tests that run its statement, then those that were not measured."""
    here = lines.get(mutant.path, {})
    known = set(chain.from_iterable(chain.from_iterable(file.values()) for file in lines.values()))
    touch = set(chain.from_iterable(here.get(str(line), ()) for line in mutant.lines)) if mutant.lines else known
    room = f"tests/unit/{mutant.path.split('/')[1]}/"
    near = set(chain.from_iterable(here.values()))
    chosen = [test for test in seconds if test in touch or test not in known]
    return sorted(
        chosen, key=lambda test: (test not in known, not test.startswith(room), test not in near, seconds[test])
    )


def is_noticed(directory: Path, mutant: Mutant, tests: Sequence[str], seconds: Seconds) -> bool:
    """Whether one of these tests fails with it."""
    file = directory / mutant.path
    source = file.read_bytes()
    file.write_bytes(mutant.apply(source))
    try:
        batches = [batch for batch in (tests[:_FIRST], tests[_FIRST:]) if batch]
        return any(
            in_child(partial(notice, directory, {test: seconds[test] for test in batch})) not in _NOT_NOTICED
            for batch in batches
        )
    finally:
        file.write_bytes(source)
        shutil.copystat(ROOT / mutant.path, file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--count", type=int, default=100, help="mutants per seed")
    parser.add_argument("--rooms", nargs="+", default=PURE, help="files, as patterns in the package")
    parser.add_argument("--tests", nargs="+", default=["tests/unit"])
    parser.add_argument("--only", nargs="+", default=(), help="some of them again, by their names: 1-17")
    parser.add_argument("--record", type=Path, help="keep here which lines each test runs, and take it from here")
    given = parser.parse_args()
    paths = sorted({path for room in given.rooms for path in (ROOT / PACKAGE).glob(room)})
    sources = {str(path.relative_to(ROOT)): path.read_bytes() for path in paths}
    every = [mutant for path, source in sources.items() for mutant in mutants(path, source)]
    drawn = {
        f"{seed}-{at}": mutant
        for seed in given.seed
        for at, mutant in enumerate(random.Random(seed).sample(every, given.count), 1)
    }
    if given.only:
        drawn = {name: drawn[name] for name in given.only}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name).resolve() / "copy"
        unneeded = shutil.ignore_patterns(".venv", ".git", ".*_cache", ".hypothesis", ".coverage*")
        shutil.copytree(ROOT, directory, ignore=unneeded)
        seconds, lines = recorded(directory, given.tests, given.record or directory / "record.json")
        noticed = 0
        for each, mutant in drawn.items():
            if is_noticed(directory, mutant, order(mutant, seconds, lines), seconds):
                noticed += 1
            else:
                print(each, mutant.show(sources[mutant.path]), flush=True)
    used = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    print(f"{noticed} of {len(drawn)} noticed (drawn from {len(every)}), {used:.0f} s of processor time")


if __name__ == "__main__":
    main()
