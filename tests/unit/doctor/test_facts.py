"""What is read of a machine's files."""

import os
from pathlib import Path

import pytest

from simple_gpu_scheduler.doctor.facts import (
    RulesFacts,
    find_cleaner,
    find_leases,
    find_logout,
    find_rules,
    find_shell,
    find_state,
    find_versions,
)

LEASES = "/tmp/simple_gpu_scheduler"


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ("", ""),
        ("D /tmp 1777 root root -\n", ""),
        ("q /tmp 1777 root root 10d\n", "systemd-tmpfiles after 10d"),
        ("q /tmp/ 1777 root root m:10d\n", "systemd-tmpfiles after 10d"),
        ("# q /tmp 1777 root root 10d\n", ""),
        ("q /tmp 1777 root root 10d\nx /tmp/simple_*\n", ""),
        ("q /tmp 1777 root root 10d\nd /tmp/simple_gpu_scheduler 1777 root root -\n", ""),
        ("q /tmp 1777 root root 10d\nd /tmp/simple_gpu_scheduler 1777\n", ""),
        ("d /tmp/simple 1777 root root 1d\nd /run 755 root root 1d\n\nd\n", ""),
    ],
)
def test_what_cleans_up_the_lease_directory_is_found(tmp_path: Path, rules: str, found: str) -> None:
    put(tmp_path, "usr/lib/tmpfiles.d/tmp.conf", rules)
    assert find_cleaner(f"{tmp_path}/", LEASES) == found


def test_a_file_of_the_same_name_in_etc_counts_instead(tmp_path: Path) -> None:
    put(tmp_path, "usr/lib/tmpfiles.d/tmp.conf", "q /tmp 1777 root root 10d\n")
    put(tmp_path, "etc/tmpfiles.d/tmp.conf", "q /tmp 1777 root root -\n")
    assert find_cleaner(f"{tmp_path}/", LEASES) == ""


def test_a_daily_job_cleans_up_only_what_is_temporary(tmp_path: Path) -> None:
    put(tmp_path, "etc/cron.daily/tmpreaper", "")
    assert find_cleaner(f"{tmp_path}/", LEASES) == "tmpreaper"
    assert find_cleaner(f"{tmp_path}/", "/var/lib/sgs") == ""


@pytest.mark.parametrize(
    ("main", "more", "kills"),
    [
        ("", "", ""),
        ("[Login]\n#KillUserProcesses=yes\n", "", ""),
        ("[Login]\nKillUserProcesses=yes\nKillExcludeUsers=\n", "", "logind.conf"),
        ("[Login]\nKillUserProcesses=no\n", "[Login]\nKillUserProcesses = yes\nKillExcludeUsers=bob\n", "50-it.conf"),
        ("[Login]\nKillUserProcesses=yes\nKillExcludeUsers=\n", "[Login]\nKillUserProcesses=no\n", ""),
    ],
)
def test_what_ends_runs_at_a_logout_is_found(tmp_path: Path, main: str, more: str, kills: str) -> None:
    put(tmp_path, "etc/systemd/logind.conf", main)
    put(tmp_path, "usr/lib/systemd/logind.conf.d/50-it.conf", more)
    assert os.path.basename(find_logout(f"{tmp_path}/")) == kills


def test_users_that_are_excluded_from_that_are_not_warned(tmp_path: Path) -> None:
    put(tmp_path, "etc/systemd/logind.conf", "KillUserProcesses=yes\n")  # root is excluded unless it says otherwise
    assert bool(find_logout(f"{tmp_path}/")) == bool(os.getuid())


def test_completion_is_looked_for_where_the_documents_say_to_put_it(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "SHELL": "/usr/bin/zsh"}
    assert find_shell(home) == ("zsh", f"{tmp_path}/.zshrc", False)
    put(tmp_path, ".zshrc", 'eval "$(_SGS_COMPLETE=zsh_source sgs)"\n')
    assert find_shell(home).completes
    assert not find_shell(home | {"ZDOTDIR": str(tmp_path / "zsh")}).completes
    put(tmp_path, ".bashrc", '# eval "$(_SIMPLE_GPU_SCHEDULER_COMPLETE=zsh_source simple_gpu_scheduler)"\n')
    assert not find_shell(home | {"SHELL": "/bin/bash"}).completes
    assert find_shell({}) == ("", "", False)


def test_the_state_directory_is_checked_and_not_created(tmp_path: Path) -> None:
    home = tmp_path / "state"
    facts = find_state({"XDG_STATE_HOME": str(home)})
    assert (facts.path, facts.problem, home.exists()) == (f"{home}/simple_gpu_scheduler/runs", "", False)
    home.write_text("")
    assert find_state({"XDG_STATE_HOME": str(home)}).problem == f"{home} is not a directory"
    home.unlink()
    Path(facts.path).mkdir(parents=True)
    Path(facts.path).chmod(0o777)
    assert "writable by others" in find_state({"XDG_STATE_HOME": str(home)}).problem


def test_the_lease_directory_is_not_created_nor_are_its_files(tmp_path: Path) -> None:
    where = tmp_path / "leases"
    environment = {"SGS_LEASE_DIR": str(where)}
    rules = RulesFacts("/etc/it.toml")
    assert not find_leases(rules, environment).exists
    assert not where.exists()
    where.mkdir()
    where.chmod(0o1777)
    assert find_leases(rules, environment)[:4] == (str(where), "", True, find_leases(rules, environment).owner)
    os.mkfifo(where / "GPU-1")
    (where / "GPU-2").symlink_to(where)
    facts = find_leases(rules, environment)
    assert len(facts.bad_files) == 2
    assert "is not a regular file" in facts.bad_files[0]
    assert "is a symbolic link" in facts.bad_files[1]
    where.chmod(0o777)
    assert "lets users delete each other's leases" in find_leases(rules, environment).problem
    assert "not an absolute path" in find_leases(rules, {"SGS_LEASE_DIR": "x"}).problem
    broken = RulesFacts("/etc/it.toml", "/etc/it.toml: no")
    assert find_leases(broken, environment).problem == "unknown until /etc/it.toml can be read"


def test_a_broken_machine_file_is_a_fact(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    assert find_rules(str(path)).problem == ""
    path.write_text("what\n")
    assert find_rules(str(path)).problem.startswith(f"{path}: ")


def test_the_versions_of_what_is_installed_and_needed_are_known() -> None:
    versions = find_versions()
    assert set(versions.libraries) == {"click", "rich", "nvidia-ml-py"} == set(versions.needs)
