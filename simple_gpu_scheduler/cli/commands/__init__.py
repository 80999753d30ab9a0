"""The words that can be typed after `simple_gpu_scheduler`, a file each, and the one table of them.

The group loads a command from here when it is typed; --help, completion and the man page list them from here.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """A command: its name, the module that has it as `NAME_command`, and what it does in a line."""

    name: str
    module: str
    line: str


COMMANDS = (
    Entry("run", "run", "Wait for a free GPU and run one command on it: run -- COMMAND."),
    Entry("gpus", "gpus", "Show what is on each GPU and which are free."),
    Entry("submit", "submit", "Add commands to the queue of an active run."),
    Entry("status", "status", "Show what runs and what waits."),
    Entry("logs", "logs", "Print the output of jobs."),
    Entry("wait", "wait", "Wait until a run has ended, and exit with its exit code."),
    Entry("history", "history", "List past runs and their jobs."),
    Entry("report", "report", "Summarise a run: as text, page, picture or data."),
    Entry("stop", "ask", "Stop a run when its running jobs have ended."),
    Entry("pause", "ask", "Start no more jobs for now."),
    Entry("continue", "ask", "Continue a paused run."),
    Entry("cancel", "ask", "Cancel jobs, waiting or running."),
    Entry("retry", "ask", "Run jobs again that failed or did not start."),
    Entry("simulate", "simulate", "Replay a workload under each policy."),
    Entry("tune", "tune", "Find the policy that serves your workload best."),
)
