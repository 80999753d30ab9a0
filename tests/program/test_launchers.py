"""The launchers in a fresh checkout: they set themselves up, once, and repair what was interrupted."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, needs, until

UV = Path(sys.executable).parent / "uv"
MESSAGE = "simple_gpu_scheduler: setting up {}/.venv, once; this takes a moment\n"


def environment(*, with_uv: bool, tools: Path) -> dict[str, str]:
    """The environment of a user who has just logged in, with uv on the PATH or not."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "PYTHON", "VIRTUAL_ENV"))
    }
    folders = [folder for folder in os.environ["PATH"].split(":") if not (Path(folder) / "uv").exists()]
    if with_uv:
        tools.mkdir(exist_ok=True)
        (tools / "uv").symlink_to(UV)
        folders.insert(0, str(tools))
    return kept | {"PATH": ":".join(folders)}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what git would check out."""
    needs("git")
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in names.stdout.splitlines():
        if (ROOT / name).is_file():
            target = tmp_path / "checkout" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return tmp_path / "checkout"


def run(checkout: Path, *args: str, env: dict[str, str], stdin: str = "", program: str = "simple_gpu_scheduler"):
    launcher = checkout / "bin" / program
    env = env | {name: os.environ[name] for name in ("SGS_LEASE_DIR", "XDG_STATE_HOME")}
    return subprocess.run(
        [launcher, *args], input=stdin, capture_output=True, text=True, env=env, timeout=300, check=False
    )


@pytest.mark.parametrize("with_uv", [False, True], ids=["pip", "uv"])
def test_the_first_start_sets_up_in_one_line_and_the_next_needs_no_other_program(
    checkout: Path, tmp_path: Path, with_uv: bool
) -> None:
    env = environment(with_uv=with_uv, tools=tmp_path / "tools")
    done = run(checkout, "--gpus", "0", "-q", env=env, stdin="echo it runs\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "it runs\n", MESSAGE.format(checkout))
    # No PATH, so nothing but the shell itself and .venv can have been used.
    done = run(checkout, "--gpus", "0", "-q", env={"PATH": "/nonexistent"}, stdin="echo again\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "again\n", "")
    assert len([*(tmp_path / "state").rglob("*.jsonl")]) == 2
    done = run(checkout, "status", "none", env={"PATH": "/nonexistent"}, program="sgs")
    assert (done.returncode, done.stderr[:5]) == (2, "sgs: ")
    done = run(checkout, "{a}", "-p", "a", "1", env={"PATH": "/nonexistent"}, program="simple_hypersearch")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    # As `ps` and `pgrep` show it; and other programs are those of the user, whatever Python ours was started with.
    script = "ps -o comm= $PPID; python3 -c 'import sys; print(sys.flags.no_site)'\n"
    done = run(checkout, "--gpus", "0", "-q", "--no-journal", env=env, stdin=script, program="sgs")
    assert done.stdout == "sgs\n0\n"


def test_an_interrupted_set_up_is_repaired(checkout: Path, tmp_path: Path) -> None:
    env = environment(with_uv=False, tools=tmp_path / "tools")
    launcher = [checkout / "bin/simple_gpu_scheduler", "--version"]
    with subprocess.Popen(launcher, env=env, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        until((checkout / ".venv/bin/python").exists)
        os.killpg(process.pid, signal.SIGKILL)
    assert not (checkout / ".venv/ready").exists()
    done = run(checkout, "--version", env=environment(with_uv=True, tools=tmp_path / "tools"))
    assert done.stdout.startswith("simple_gpu_scheduler ")
    assert done.stderr == MESSAGE.format(checkout)


def test_a_checkout_that_was_moved_or_updated_is_set_up_again_and_links_are_followed(
    checkout: Path, tmp_path: Path
) -> None:
    env = environment(with_uv=True, tools=tmp_path / "tools")
    assert run(checkout, "--version", env=env).returncode == 0
    moved = checkout.rename(tmp_path / "moved it")
    assert run(moved, "--version", env=env).stderr == MESSAGE.format(moved)
    link = tmp_path / "link"
    link.symlink_to(moved / "bin/simple_gpu_scheduler")
    done = subprocess.run([link, "--version"], capture_output=True, text=True, env=env, check=True)
    assert done.stderr == ""
    later = (moved / ".venv/ready").stat().st_mtime + 10
    os.utime(moved / "pyproject.toml", (later, later))
    assert run(moved, "--version", env=env).stderr == MESSAGE.format(moved)


def test_two_first_starts_at_once_set_up_once(checkout: Path, tmp_path: Path) -> None:
    env = environment(with_uv=True, tools=tmp_path / "tools")
    launcher = [checkout / "bin/simple_gpu_scheduler", "--version"]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(launcher, env=env, stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
    said = [process.communicate(timeout=300) for process in both]
    assert all(out.startswith("simple_gpu_scheduler ") for out, _ in said)
    assert "".join(err for _, err in said) == MESSAGE.format(checkout)


def test_a_set_up_that_fails_says_why_and_starts_nothing(checkout: Path, tmp_path: Path) -> None:
    (checkout / "pyproject.toml").write_text("this is no toml")
    done = run(checkout, "--version", env=environment(with_uv=True, tools=tmp_path / "tools"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "setup failed; fix the problem above and run the command again" in done.stderr


def test_without_a_python_that_is_new_enough_it_says_what_to_install(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("mktemp", "rm", "cat", "flock", "dirname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    done = run(checkout, "--version", env={"PATH": str(tools)})
    assert done.returncode == 2
    assert "no Python 3.10 or newer was found; install one (on Debian and Ubuntu: apt install python3" in done.stderr


def test_the_package_installs_the_same_commands(checkout: Path, tmp_path: Path) -> None:
    env = environment(with_uv=True, tools=tmp_path / "tools")
    subprocess.run(["uv", "venv", "-q", tmp_path / "venv"], env=env, check=True)
    python = tmp_path / "venv/bin/python"
    subprocess.run(["uv", "pip", "install", "-q", "--python", python, checkout], env=env, check=True)
    for command in (
        [tmp_path / "venv/bin/simple_gpu_scheduler"],
        [tmp_path / "venv/bin/sgs"],
        [tmp_path / "venv/bin/simple_hypersearch"],
        [python, "-m", "simple_gpu_scheduler"],
    ):
        shown = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        assert shown.startswith("simple_")
    tool = env | {"UV_TOOL_DIR": str(tmp_path / "tool"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    subprocess.run(["uv", "tool", "install", "-q", checkout], env=tool, check=True)
    assert {path.name for path in (tmp_path / "bin").iterdir()} == {"simple_gpu_scheduler", "sgs", "simple_hypersearch"}
