"""The rooms: who may import what, read from the source."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

PACKAGE = ROOT / "simple_gpu_scheduler"
FILES = sorted(PACKAGE.rglob("*.py"))
PURE = {
    "scheduler",
    "dependencies",
    "lineup",
    "outcomes",
    "past",
    "eta",
    "joblog_resume",
    "resuming",
    "cutting",
    "slots",
    "policies",
    "estimates",
    "choosing",
    "verdicts",
    "simulator",
    "labels",
    "workloads",
    "measures",
    "comparing",
    "standings",
    "tuning",
    "schooling",
    "learning",
    "halting",
    "tally",
    "jobs",
    "units",
    "comments",
    "options",
    "lines",
    "events",
    "quarantine",
    "run_rules",
    "waiting",
}
PURE |= {"hypersearch", "errors", "templates", "notifying", "occasions"}
NOT_FOR_PURE = {"time", "threading", "subprocess", "pynvml", "rich", "click", "os", "socket", "signal", "ctypes"}
ONLY_IN = {
    "pynvml": {"gpus"},
    "click": {"cli"},
    "rich": {"sinks", "cli"},
    "ctypes": {"processes", "gpus", "guardian", "inotify", "leases", "unyielding"},
    "scipy": {"hypersearch"},
    "matplotlib": {"drawing"},
    "yaml": {"hypersearch"},
}

# Each room, and those of ours that it may know beside itself.
FIRST = {"errors", "jobs", "events", "units"}
MAY_KNOW = {
    "errors": set(),
    "jobs": set(),
    "units": set(),
    "comments": set(),
    "events": {"jobs", "waiting"},
    "options": {"units"},
    "policies": {"jobs"},
    "halting": set(),
    "run_rules": {"halting", "jobs"},
    "slots": {"jobs"},
    "quarantine": {"jobs"},
    "waiting": set(),
    "tally": {"errors", "events", "jobs"},
    "lines": {"comments", "events", "options", "jobs", "units"},
    "sources": {"cutting", "errors", "events", "feeds", "jobs", "lines"},
    "hypersearch": {"comments", "errors", "installing", "lines", "options"},
    "estimates": {"jobs", "labels"},
    "labels": {"jobs", "templates"},
    "recalling": {"errors", "estimates", "journal", "workloads"},
    "workloads": FIRST | {"estimates", "journal", "simulator", "templates"},
    "measures": {"simulator"},
    "comparing": {"estimates", "lineup", "measures", "policies", "scheduler", "simulator", "slots"},
    "standings": set(),
    "tuning": {"lineup", "measures", "policies", "simulator", "standings"},
    "schooling": {"simulator", "standings"},
    "learning": {"comparing", "measures", "policies", "schooling", "standings"},
    "simulated": {"engines", "inbox", "jobs", "leases", "signals", "sources"},
    "drawing": {"errors", "installing"},
    "waits_figure": {"comparing", "drawing", "wording"},
    "lineup": {"estimates", "jobs", "policies"},
    "choosing": {"lineup", "policies", "slots"},
    "verdicts": {"jobs"},
    "scheduler": {"choosing", "dependencies", "estimates", "jobs", "lineup", "policies", "slots", "verdicts"},
    "simulator": {"jobs", "scheduler", "slots"},
    "dependencies": {"jobs"},
    "outcomes": {"publishing", "events", "jobs", "scheduler", "tally", "verdicts"},
    "server": {"threads"},
    "client": {"errors", "journal"},
    "eta": {"events", "jobs"},
    "stopping": {"publishing", "adopted", "attempts", "events", "halting", "scheduler", "tally"},
    "control": {
        "publishing",
        "adopted",
        "allotment",
        "attempts",
        "eta",
        "events",
        "jobs",
        "outcomes",
        "resuming",
        "run_rules",
        "scheduler",
        "tally",
    },
    "past": {"cutting", "journal", "jobs", "lines", "options"},
    "joblog_resume": {"events", "jobs", "lines"},
    "submitting": {"errors"},
    "cutting": {"comments", "lines"},
    "feeds": {"events", "following"},
    "spooled": {"events", "feeds", "keeper", "threads"},
    "following": {"inotify", "rotation"},
    "rotation": set(),
    "inotify": {"journal"},
    "resuming": {"events", "jobs", "journal", "lines", "verdicts"},
    "outliving": {"errors", "journal", "ownership", "process_tree", "threads"},
    "adopted": {"clock", "jobs", "outliving", "resuming"},
    "starting": {
        "publishing",
        "attempts",
        "events",
        "gpu_watch",
        "jobs",
        "outcomes",
        "ownership",
        "run_rules",
        "scheduler",
    },
    "journal": FIRST | {"publishing", "threads", "waiting"},
    "clock": set(),
    "people": set(),
    "ownership": {"jobs", "people", "process_tree"},
    "gpus": FIRST | {"people", "process_tree"},
    "leases": FIRST | {"people", "threads"},
    "gpu_state": {"gpus", "leases", "slots", "units", "waiting"},
    "allotment": {"gpu_state", "gpus", "leases", "slots", "waiting"},
    "machine": {"allotment", "errors", "gpus", "leases", "ownership", "units"},
    "attempts": {"clock", "engines", "jobs", "leases"},
    "keeper": FIRST | {"engines", "journal", "ownership", "process_tree", "processes", "threads"},
    "gpu_watch": {
        "publishing",
        "allotment",
        "events",
        "jobs",
        "leases",
        "outcomes",
        "quarantine",
        "scheduler",
        "slots",
        "verdicts",
        "waiting",
    },
    "signals": FIRST | {"threads"},
    "threads": {"errors"},
    "processes": FIRST,
    "process_tree": FIRST,
    "inbox": {"engines", "errors", "estimates", "leases", "outliving", "server", "signals", "sources"},
    "engines": FIRST | {"bystanders", "keeper", "leases", "ownership", "processes", "process_tree", "threads"},
    "installing": set(),
    "whole_files": set(),
    "occasions": set(),
    "notifying": {"events", "jobs", "occasions", "wording"},
    "bystanders": {"guardian", "processes"},
    "guardian": set(),
    "templates": set(),
    "report": {"drawing", "errors", "whole_files", "job_logs", "jobs", "journal", "past", "templates", "wording"},
    "wording": {"jobs", "waiting"},
    "job_logs": {"jobs", "units", "wording"},
    "publishing": {"events"},
    "sinks": FIRST
    | {"bystanders", "eta", "job_logs", "notifying", "occasions", "processes", "publishing", "run_rules", "wording"}
    | {"joblog_resume", "journal", "threads", "waiting"},
}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The names that a file imports, those of ours with all their dots."""
    names: set[str] = set()
    package = ["simple_gpu_scheduler", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def known_rooms(path: Path) -> set[str]:
    ours = (name.split(".") for name in imports(path) if name.startswith("simple_gpu_scheduler."))
    return {parts[1] for parts in ours if (PACKAGE / parts[1]).exists() or (PACKAGE / f"{parts[1]}.py").exists()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
class TestFile:
    def test_says_what_it_does(self, path: Path) -> None:
        assert ast.get_docstring(ast.parse(path.read_text()))

    def test_is_short(self, path: Path) -> None:
        tree = ast.parse(path.read_text())
        assert len(path.read_text().splitlines()) <= 250
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        assert all((node.end_lineno or 0) - node.lineno < 60 for node in functions)

    def test_knows_only_what_its_room_may(self, path: Path) -> None:
        allowed = MAY_KNOW.get(room(path))
        if allowed is not None:
            assert known_rooms(path) - {room(path)} <= allowed

    def test_leaves_risky_libraries_to_their_room(self, path: Path) -> None:
        tops = {name.split(".")[0] for name in imports(path)}
        if room(path) in PURE:
            assert not tops & NOT_FOR_PURE
        assert all(room(path) in rooms for library, rooms in ONLY_IN.items() if library in tops)


def test_help_loads_neither_rich_nor_nvml_nor_the_loop() -> None:
    script = """
import sys
from simple_gpu_scheduler.cli.main import main
main.main(args=["--help"], standalone_mode=False)
print(sorted({"rich", "pynvml", "importlib.metadata", "simple_gpu_scheduler.runner"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
