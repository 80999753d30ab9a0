"""The commands, one file each, and the one table of them.

The group loads a command from here when it is typed; --help, completion and the man page list them from here.
"""

from simple_gpu_scheduler.base.values import Mapping
from simple_gpu_scheduler.cli.declarations import Command

# Name: the module that has it as NAME_command, and what it does in a line.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("run", "Wait for a free GPU and run one command on it: run -- COMMAND."),
    "gpus": ("gpus", "Show what is on each GPU and which are free."),
    "submit": ("submit", "Add commands to the queue of an active run."),
    "status": ("status", "Show running and waiting jobs."),
    "logs": ("logs", "Print the output of jobs."),
    "wait": ("wait", "Wait until a run has ended, and exit with its exit code."),
    "history": ("history", "List past runs and their jobs."),
    "clean": ("clean", "Show what runs keep on disk, and delete it."),
    "report": ("report", "Summarise a run: as text, web page, chart or data."),
    "metrics": ("metrics", "Print or serve metrics for Prometheus."),
    "stop": ("ask", "Stop a run when its running jobs have ended."),
    "pause": ("ask", "Start no more jobs for now."),
    "continue": ("ask", "Continue a paused run."),
    "cancel": ("ask", "Cancel jobs, waiting or running."),
    "retry": ("ask", "Run jobs again if they failed or were not started."),
    "simulate": ("simulate", "Replay a workload under each policy."),
    "tune": ("tune", "Find the policy that serves your workload best."),
    "doctor": ("doctor", "Check this machine, and say what to do about each problem."),
}


def load(name: str) -> Command:
    """The command of that name; the run has none."""
    module, attribute = (COMMANDS[name][0], f"{name}_command") if name else ("schedule", "run")
    command: Command = getattr(__import__(f"{__name__}.{module}", fromlist=[module]), attribute)
    return command
