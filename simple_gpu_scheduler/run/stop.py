"""How a run is stopped: by signals, on request, or after too many failures."""

from simple_gpu_scheduler.base.stdlib import signal
from simple_gpu_scheduler.engines.protocol import NEVER
from simple_gpu_scheduler.events import Noticed, StopAsked
from simple_gpu_scheduler.system.signals import AT_ONCE

from . import attempts
from .state import State


def signalled(state: State, number: int) -> None:
    """A signal has come: one that stops the run, or SIGHUP, which does not."""
    if number == signal.SIGHUP:
        state.publish(Noticed("SIGHUP: the terminal is gone, the run continues"))
        return
    now = state.clock.now()
    if number == signal.SIGTERM == state.signal and now - state.signalled_at < AT_ONCE:
        return
    state.signal, state.signalled_at = number, now
    name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    stop(state, name, ends_running=state.ledger.is_stopping or number != signal.SIGINT)


def stop(state: State, why: str, *, ends_running: bool) -> None:
    """Start no more jobs; with `ends_running` also end running jobs, the second time by force."""
    force = ends_running and state.ends_running
    state.ends_running = state.ends_running or ends_running
    state.publish(StopAsked(why, ends_running, force, len(state.ledger.running)))
    if ends_running:
        attempts.stop_all(state, force=force)


def check_gpus(state: State) -> None:
    """Stop if every GPU is set aside, and nothing runs or starts by itself; the jobs that wait for GPUs are left."""
    aside = state.quarantine.aside
    if not aside or state.attempts or not state.demand.gpus or state.scheduler.next_wake(state.clock.now()) != NEVER:
        return
    if aside.issuperset(state.scheduler.gpus):
        stop(state, "every GPU is set aside", ends_running=False)


def check_failures(state: State) -> None:
    """Stop if as many jobs have failed as --halt allows."""
    ledger, halt = state.ledger, state.rules.failures.halt
    if not halt or ledger.is_stopping:
        return
    failed, is_left = ledger.failed, ledger.running or ledger.waiting or not ledger.all_read
    if not is_left or not failed:
        return
    if halt.is_reached(failed, ledger.counts().total, all_read=ledger.all_read):
        stop(state, f"--halt: {failed} job{'' if failed == 1 else 's'} did not succeed", ends_running=halt.now)
