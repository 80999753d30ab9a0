"""What the facts mean: a grade for each, and what to do. Pure."""

from simple_gpu_scheduler.base.units import show_size

from . import Check
from .driver import DriverFacts, GpuFacts
from .facts import Facts, LeaseFacts, LimitFacts, ProcFacts, RulesFacts, ShellFacts, StateFacts, Versions

_FEW_FILES = 256
_FEW_PROCESSES = 100
_LITTLE_SPACE = 100 << 20
_PAGE = "docs/admin.md"
_FOR_ALL = 0o1777
_LEASES = "lease directory"
_COMPLETIONS = {
    "bash": 'eval "$(_SGS_COMPLETE=bash_source sgs)"',
    "zsh": 'eval "$(_SGS_COMPLETE=zsh_source sgs)"',
    "fish": "_SGS_COMPLETE=fish_source sgs | source",
}


def judge_all(facts: Facts) -> list[Check]:
    """A line for each check, in the order in which they matter."""
    return [
        judge_driver(facts.driver),
        *([judge_gpus(facts.driver)] if not facts.driver.problem else []),
        judge_leases(facts.leases),
        judge_rules(facts.rules),
        judge_container(facts.proc, facts.driver),
        judge_proc(facts.proc),
        judge_subreaper(facts.subreaper),
        judge_inotify(has_inotify=facts.has_inotify),
        judge_files(facts.limits),
        judge_processes(facts.limits),
        judge_state(facts.state),
        judge_logout(facts.kills_at_logout),
        judge_versions(facts.versions),
        judge_shell(facts.shell),
    ]


def judge_versions(versions: Versions) -> Check:
    """A library that is missing or older than what was tested."""
    shown = ", ".join(f"{name} {version}" for name, version in versions.libraries.items())
    found = f"simple_gpu_scheduler {versions.program}, Python {versions.python}, {shown}"
    for name, needed in versions.needs.items():
        version = versions.libraries.get(name)
        if not version:
            return Check("versions", "FAIL", f"{found}; {name} is missing", "reinstall the program")
        if _numbers(version) < _numbers(needed):
            advice = f"reinstall the program, or upgrade {name} to {needed} or newer"
            return Check("versions", "FAIL", f"{found}; {name} is too old", advice)
    return Check("versions", "ok", found)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def judge_driver(driver: DriverFacts) -> Check:
    """Without NVML, use of the GPUs by others is not seen."""
    if driver.is_hung:
        return Check("driver", "FAIL", driver.problem, "see dmesg for lines with NVRM; often only a reboot helps")
    if driver.problem:
        return Check(
            "driver",
            "FAIL",
            driver.problem,
            "nvidia-smi must work first; until then, use of GPUs by others goes unnoticed",
        )
    return Check("driver", "ok", f"NVIDIA driver {driver.version or 'of unknown version'} answers through NVML")


def judge_gpus(driver: DriverFacts) -> Check:
    """GPUs that cannot be used, or whose users NVML does not tell."""
    gpus = driver.gpus
    broken = [gpu for gpu in gpus if gpu.problem]
    if not gpus:
        return Check("GPUs", "FAIL", "NVML lists none", "see nvidia-smi")
    if broken:
        return Check("GPUs", "FAIL", _each(broken), "see nvidia-smi and dmesg; until then, leave them out with --gpus")
    silent = [gpu.name for gpu in gpus if not gpu.tells_processes]
    if silent:
        found = f"NVML does not report which processes use {', '.join(silent)}"
        return Check("GPUs", "warn", found, "used memory decides whether one is free; see --max-used-memory")
    return Check("GPUs", "ok", f"NVML lists {len(gpus)}")


def _each(gpus: list[GpuFacts]) -> str:
    return "; ".join(f"{gpu.name}: {gpu.problem}" for gpu in gpus)


def judge_leases(leases: LeaseFacts) -> Check:
    """Whatever lets two schedulers take the same GPU."""
    found, advice = _what_breaks_leases(leases)
    if found:
        return Check(_LEASES, "FAIL", found, advice)
    found, advice = _what_endangers_leases(leases)
    if found:
        return Check(_LEASES, "warn", found, advice)
    return Check(_LEASES, "ok", f"{leases.path} (owned by {leases.owner}, mode {leases.mode:o})")


def _what_breaks_leases(leases: LeaseFacts) -> tuple[str, str]:
    where, bad = leases.path, leases.bad_files
    if leases.problem:
        return leases.problem, "" if leases.exists else f"root can create it: see {_PAGE}"
    if leases.is_private:
        advice = "set PrivateTmp=no for this service, or use a lease directory outside /tmp"
        return f"{where} is in the private /tmp of this service (PrivateTmp)", advice
    if not leases.has_locks:
        return f"{where}: its file system has no flock", "use a directory on a local disk"
    if bad:
        return bad[0] + (f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""), ""
    return "", ""


def _what_endangers_leases(leases: LeaseFacts) -> tuple[str, str]:
    where = leases.path
    if not leases.exists:
        return f"{where} does not exist yet; the first run creates it and owns it", f"root should do so: see {_PAGE}"
    if leases.is_remote:
        return f"{where} is on a network file system, which may hang", "use a directory on a local disk"
    if not leases.is_of_root:
        advice = f"root should take it over: chown root {where}; chmod 1777 {where}"
        return f"{where} belongs to {leases.owner}, who could delete leases of others", advice
    if leases.mode != _FOR_ALL:
        found = f"{where} has mode {leases.mode:o}, so not every user can create lease files in it"
        return found, f"its owner should run: chmod 1777 {where}"
    if leases.cleaned_by:
        return f"old files in {where} are deleted by {leases.cleaned_by}", f"exempt it from that: see {_PAGE}"
    return "", ""


def judge_rules(rules: RulesFacts) -> Check:
    """A file that stops every run."""
    name = "machine file"
    if rules.problem:
        return Check(name, "FAIL", rules.problem)
    if not rules.rules.path:
        return Check(name, "ok", f"there is no {rules.path}; it is optional")
    limits = [key.replace("_", "-") for key, value in rules.rules.limits._asdict().items() if value not in (None, True)]
    return Check(name, "ok", f"{rules.path} (limits: {', '.join(limits) or 'none'})")


def judge_container(proc: ProcFacts, driver: DriverFacts) -> Check:
    """Where NVML's process IDs mean nothing."""
    name = "process IDs"
    unseen = sum(gpu.unseen for gpu in driver.gpus)
    if proc.is_container:
        found = "this container has its own, so users of a GPU are not recognised; used memory decides"
        return Check(name, "warn", found, "start the container with --pid=host, or pass --max-used-memory")
    if unseen:
        found = f"NVML names {unseen} process{'es' * (unseen > 1)} that do not exist here; used memory decides"
        return Check(name, "warn", found, "they may belong to processes that have just ended: look again")
    return Check(name, "ok", "those of the machine")


def judge_proc(proc: ProcFacts) -> Check:
    """Processes of others that are hidden still count, but have no name."""
    if proc.is_hidden:
        found = f"mounted with hidepid={proc.hidepid}: processes of other users count, but cannot be named"
        return Check("/proc", "warn", found, "to name them, add the users to the group of the mount option gid=")
    if proc.hidepid not in ("", "0", "off"):
        return Check("/proc", "ok", f"mounted with hidepid={proc.hidepid}, but this user sees all processes")
    return Check("/proc", "ok", "shows the processes of all users")


def judge_subreaper(problem: str) -> Check:
    """Without it, what a job leaves behind is lost from sight."""
    name = "leftovers of jobs"
    if problem:
        return Check(name, "FAIL", problem, "use a newer kernel, or a container that does not filter prctl")
    return Check(name, "ok", "this kernel hands them to the program (subreaper)")


def judge_inotify(*, has_inotify: bool) -> Check:
    """Without it, files are looked at again and again."""
    if has_inotify:
        return Check("inotify", "ok", "available for --follow")
    found = "no instance is left for this user, so --follow checks files at intervals of up to two seconds"
    return Check("inotify", "warn", found, "raise fs.inotify.max_user_instances with sysctl")


def judge_files(limits: LimitFacts) -> Check:
    """A run needs a few for each GPU and each running job."""
    found = f"at most {limits.files} per process (ulimit -n)"
    if limits.files < _FEW_FILES:
        return Check("open files", "warn", found, "with many GPUs that may be too few: ulimit -n 1024")
    return Check("open files", "ok", found)


def judge_processes(limits: LimitFacts) -> Check:
    """Without room for processes, jobs wait."""
    if limits.processes is None:
        return Check("processes", "ok", "no limit for this user (ulimit -u)")
    found = f"{limits.used_processes} of at most {limits.processes} for this user (ulimit -u)"
    if limits.processes - limits.used_processes < _FEW_PROCESSES:
        return Check("processes", "warn", found, "jobs may fail to start: raise the limit, or end some processes")
    return Check("processes", "ok", found)


def judge_state(state: StateFacts) -> Check:
    """Without a journal nothing can be resumed."""
    name, advice = "state directory", "set XDG_STATE_HOME to a directory of yours on a local disk"
    if state.problem:
        return Check(name, "FAIL", f"no run can be recorded in {state.path}: {state.problem}", advice)
    if state.free < _LITTLE_SPACE:
        return Check(name, "FAIL", f"{state.path}: only {show_size(state.free)} free", f"free some space, or {advice}")
    if state.is_remote:
        return Check(name, "warn", f"{state.path} is on a network file system, which may hang", advice)
    return Check(name, "ok", state.path)


def judge_logout(kills: str) -> Check:
    """A logout may end runs."""
    if kills:
        advice = "loginctl enable-linger, then start runs with: systemd-run --user --scope sgs ..."
        return Check("logout", "warn", f"ends your runs (KillUserProcesses in {kills})", advice)
    return Check("logout", "ok", "does not end your runs")


def judge_shell(shell: ShellFacts) -> Check:
    """Completion is set up by one line."""
    if shell.shell not in _COMPLETIONS:
        return Check("shell completion", "ok", f"none for {shell.shell or 'an unknown shell'}")
    if not shell.completes:
        advice = f"add to {shell.file}: {_COMPLETIONS[shell.shell]}"
        return Check("shell completion", "warn", f"not set up for {shell.shell}", advice)
    return Check("shell completion", "ok", f"set up for {shell.shell}")
