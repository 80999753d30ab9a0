"""Facts about this machine, as this user finds it. It judges nothing.

It creates nothing, and changes only what any run would repair: the mode of lease files that this user owns.
"""

import errno
import fcntl
import os
import platform
import re
import resource
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from glob import glob
from importlib import metadata

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.gpus.leases.directory import LeaseFiles, SharedDirectory, shared_directory
from simple_gpu_scheduler.gpus.machine_file import MACHINE_FILE, MachineFile, read_machine_file
from simple_gpu_scheduler.journal.files import make_directory, runs_directory
from simple_gpu_scheduler.system.files import is_of_root, is_remote
from simple_gpu_scheduler.system.inotify import Watch
from simple_gpu_scheduler.system.processes import adopt_orphans
from simple_gpu_scheduler.system.users import user_name

from .driver import DriverFacts, ask_driver

LIBRARIES = ("click", "rich", "nvidia-ml-py")
_FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel


class Versions(NamedTuple):
    """Of this program, of Python, and of the libraries: empty for one that is missing."""

    program: str
    python: str
    libraries: Mapping[str, str]
    needs: Mapping[str, str]


class RulesFacts(NamedTuple):
    """The machine file: what is wrong with it, or what it says."""

    path: str
    problem: str = ""
    rules: MachineFile = MachineFile()


class LeaseFacts(NamedTuple):
    """The lease directory. `problem` is the program's own sentence for why it cannot be used."""

    path: str = ""
    problem: str = ""
    exists: bool = True
    owner: str = "root"
    is_of_root: bool = True
    mode: int = 0o1777
    bad_files: tuple[str, ...] = ()
    has_locks: bool = True
    is_remote: bool = False
    is_private: bool = False
    cleaned_by: str = ""


class ProcFacts(NamedTuple):
    """How /proc is mounted, and whether that hides processes from this user; whose process IDs it has."""

    hidepid: str = ""
    is_hidden: bool = False
    is_container: bool = False


class LimitFacts(NamedTuple):
    """Limits of this user: open files of a process; processes, and how many there are."""

    files: int
    processes: int | None = None
    used_processes: int = 0


class StateFacts(NamedTuple):
    """Where runs are kept."""

    path: str
    problem: str = ""
    is_remote: bool = False
    free: int = 1 << 40


class ShellFacts(NamedTuple):
    """The user's shell, its start-up file, and whether that sets up completion."""

    shell: str
    file: str = ""
    completes: bool = False


class Facts(NamedTuple):
    """All of them."""

    versions: Versions
    driver: DriverFacts
    rules: RulesFacts
    leases: LeaseFacts
    proc: ProcFacts
    subreaper: str
    has_inotify: bool
    limits: LimitFacts
    state: StateFacts
    kills_at_logout: str
    shell: ShellFacts


def gather() -> Facts:
    """Look at everything; takes as long as the driver needs to answer."""
    rules = find_rules()
    return Facts(
        find_versions(),
        ask_driver(),
        rules,
        find_leases(rules, os.environ),
        find_proc(),
        _subreaper(),
        _has_inotify(),
        find_limits(),
        find_state(os.environ),
        find_logout("/"),
        find_shell(os.environ),
    )


def find_versions() -> Versions:
    """What is installed, and what this program says that it needs."""
    found, needs = {}, {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    with suppress(metadata.PackageNotFoundError):
        for need in metadata.requires("simple_gpu_scheduler") or ():
            match = re.match(r"([\w-]+)\s*\(?>=\s*([\d.]+)", need)
            if match and "extra" not in need:
                needs[match[1]] = match[2]
    return Versions(__version__, platform.python_version(), found, needs)


def find_rules(path: str = MACHINE_FILE) -> RulesFacts:
    """The machine file, if it is there and can be used."""
    try:
        return RulesFacts(path, rules=read_machine_file(path))
    except UserError as error:
        return RulesFacts(path, str(error))


def find_leases(rules: RulesFacts, environment: Mapping[str, str]) -> LeaseFacts:
    """The directory that this user's runs would use."""
    if rules.problem:
        return LeaseFacts(problem=f"unknown until {rules.path} can be read")
    try:
        shared = shared_directory(environment, rules.rules.lease_directory, rules.rules.path)
        where = os.path.normpath(shared.path)
        if not os.path.lexists(where) and os.path.isabs(where):
            return _missing(where)
        bad = _bad_files(shared)
    except UserError as error:
        return LeaseFacts(problem=str(error))
    state = os.stat(where)
    may_write = os.access(where, os.W_OK | os.X_OK)
    return LeaseFacts(
        where,
        "" if may_write else f"you may not create files in {where}; its owner must run: chmod 1777 {where}",
        owner=user_name(state.st_uid),
        is_of_root=is_of_root(state),
        mode=stat.S_IMODE(state.st_mode),
        bad_files=bad,
        has_locks=_has_locks(where),
        is_remote=is_remote(where),
        is_private=_is_private(where),
        cleaned_by=find_cleaner("/", where),
    )


def _missing(where: str) -> LeaseFacts:
    above = os.path.dirname(where)
    problem = "" if os.access(above, os.W_OK | os.X_OK) else f"{where} does not exist, and you may not create it"
    return LeaseFacts(where, problem, exists=False, is_private=_is_private(where), cleaned_by=find_cleaner("/", where))


def _bad_files(shared: SharedDirectory) -> tuple[str, ...]:
    """What the program would say of each file that it could not use. None is created."""
    files, bad = LeaseFiles(*shared), []
    for name in sorted(name for name in os.listdir(files.path) if name.startswith(("GPU-", "MIG-", "index-"))):
        try:
            os.close(files.open(name))
        except UserError as error:
            bad.append(str(error))
    return tuple(bad)


def _has_locks(directory: str) -> bool:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno == errno.EWOULDBLOCK
    finally:
        os.close(fd)
    return True


def _mounts() -> list[list[str]]:
    """The fields of /proc/self/mountinfo: root, mount point, ..., and after them the file system's own options."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            return [line.split() for line in file]
    except OSError:
        return []


def _is_private(path: str) -> bool:
    """Whether it is in a /tmp that systemd made for one service (PrivateTmp)."""
    return any(
        "systemd-private-" in mount[3] and f"{path}/".startswith(f"{mount[4].rstrip('/')}/") for mount in _mounts()
    )


def find_cleaner(root: str, path: str) -> str:
    """What deletes old files there, as far as is known: a rule of tmpfiles.d, or a daily job.

    Of several rules that cover a directory, systemd-tmpfiles follows the one with the longest path.
    """
    rules = [[*line.split(), *["-"] * 6][:6] for line in _tmpfiles(root)]
    covering = [rule for rule in rules if f"{path}/".startswith(f"{rule[1].rstrip('/')}/")]
    if any(rule[0][0] in "xX" and fnmatch(path, rule[1].rstrip("/")) for rule in rules):
        return ""
    age = max(covering, key=lambda rule: len(rule[1]))[5] if covering else "-"
    if age != "-":
        return f"systemd-tmpfiles after {age.rpartition(':')[2]}"
    is_temporary = path.startswith(("/tmp/", "/var/tmp/"))  # noqa: S108 - no temporary file
    jobs = [os.path.basename(job) for name in ("tmpreaper", "tmpwatch") for job in glob(f"{root}etc/cron.*/{name}")]
    return jobs[0] if jobs and is_temporary else ""


def _tmpfiles(root: str) -> list[str]:
    """The lines of tmpfiles.d: of files with the same name, the first in this order counts."""
    found: dict[str, str] = {}
    for directory in ("etc", "run", "usr/lib"):
        for path in glob(f"{root}{directory}/tmpfiles.d/*.conf"):  # noqa: S108 - no temporary file
            found.setdefault(os.path.basename(path), path)
    return [line for _, path in sorted(found.items()) for line in _lines(path) if not line.startswith("#")]


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.strip() for line in file if line.strip()]
    except OSError:
        return []


def find_proc() -> ProcFacts:
    """How /proc is mounted."""
    options = next((mount[-1] for mount in reversed(_mounts()) if mount[4] == "/proc"), "")
    found = dict(option.partition("=")[::2] for option in options.split(","))
    hidepid = found.get("hidepid", "")
    sees_all = os.getuid() == 0 or int(found.get("gid") or 0) in [*os.getgroups(), os.getgid()]
    with suppress(OSError):
        is_container = os.readlink("/proc/self/ns/pid") != _FIRST_PID_NAMESPACE
        return ProcFacts(hidepid, hidepid not in ("", "0", "off") and not sees_all, is_container)
    return ProcFacts(hidepid)


def _subreaper() -> str:
    try:
        adopt_orphans()
    except UserError as error:
        return str(error)
    return ""


def _has_inotify() -> bool:
    watch = Watch(uses_inotify=True)
    try:
        return watch.uses_inotify
    finally:
        watch.close()


def find_limits() -> LimitFacts:
    """Those that hold for a run that this shell starts."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if processes == resource.RLIM_INFINITY or os.getuid() == 0:  # which no such limit binds
        return LimitFacts(files)
    return LimitFacts(files, processes, sum(_threads(pid) for pid in os.listdir("/proc") if pid.isdigit()))


def _threads(pid: str) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task")) if os.stat(f"/proc/{pid}").st_uid == os.getuid() else 0
    except OSError:  # it has just ended
        return 0


def find_state(environment: Mapping[str, str]) -> StateFacts:
    """Where this user's runs are kept, or would be."""
    path = runs_directory(environment)
    above = path
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    problem = ""
    try:
        if above == path:
            make_directory(path)
        if not os.access(above, os.W_OK | os.X_OK):
            problem = f"you may not write to {above}"
        if not os.path.isdir(above):
            problem = f"{above} is not a directory"
        disk = os.statvfs(above)
        return StateFacts(path, problem, is_remote(above), disk.f_bavail * disk.f_frsize)
    except OSError as error:
        return StateFacts(path, error.strerror or str(error))


def find_logout(root: str) -> str:
    """The file of systemd-logind that has the processes of a user killed at the end of a session; empty if none."""
    directories = [f"{root}{each}/systemd" for each in ("etc", "run", "usr/local/lib", "usr/lib")]
    main = next((path for each in directories if os.path.exists(path := f"{each}/logind.conf")), "")
    found: dict[str, str] = {}
    for each in directories:
        for path in glob(f"{each}/logind.conf.d/*.conf"):
            found.setdefault(os.path.basename(path), path)
    kills, spared = "", "root"
    for path in [main, *(path for _, path in sorted(found.items()))]:
        for key, value in _settings(_lines(path)):
            if key == "KillUserProcesses":
                kills = path if value.lower() in ("yes", "true", "1", "on") else ""
            elif key == "KillExcludeUsers":
                spared = value
    return "" if user_name(os.getuid()) in spared.split() else kills


def _settings(lines: Iterable[str]) -> list[tuple[str, str]]:
    pairs = [line.partition("=")[::2] for line in lines if not line.startswith(("#", ";")) and "=" in line]
    return [(key.strip(), value.strip()) for key, value in pairs]


def find_shell(environment: Mapping[str, str]) -> ShellFacts:
    """Whether its start-up files set up completion, as docs/commands.md says."""
    shell = os.path.basename(environment.get("SHELL", ""))
    home = environment.get("HOME", "/")
    files = {
        "bash": (f"{home}/.bashrc", "/etc/bash.bashrc", "/etc/bashrc"),
        "zsh": (f"{environment.get('ZDOTDIR') or home}/.zshrc", "/etc/zsh/zshrc", "/etc/zshrc"),
        "fish": (f"{home}/.config/fish/config.fish", "/etc/fish/config.fish"),
    }.get(shell, ())
    completes = any(f"_COMPLETE={shell}_source" in line for path in files for line in _lines(path))
    return ShellFacts(shell, files[0] if files else "", completes)
