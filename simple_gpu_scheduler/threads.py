"""Starting threads that no signal goes to. Knows nothing of what they do."""

import signal
import threading
from collections.abc import Callable


def start_thread(run: Callable[[], object]) -> threading.Thread:
    """Start a daemon thread with all signals blocked; a RuntimeError says that the system allows no more.

    The kernel gives a signal to any thread that does not block it. Python's handlers run in the main thread only, and a
    signal that another thread took does not wake it: it would be acted on at the next message, which may be tomorrow.
    """
    thread = threading.Thread(target=run, daemon=True)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()  # inherits the mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return thread
