"""`python -S start.py PROGRAM ARGUMENT...` is what the launchers run: a program of this checkout, started quickly.

`-S` leaves out `site`, which takes 3 ms: it reads all `.pth` files of .venv, and runs what is in them. None of that is
needed here, but the libraries of .venv are: they come last on the path, so only what is not Python's own is sought
there. This file itself is compiled at every start, so it is short.
"""

import sys

ROOT = __file__.rpartition("/bin/")[0]
LIBRARIES = f"{ROOT}/.venv/lib/python%d.%d{'t' * ('t' in sys.abiflags)}/site-packages" % sys.version_info[:2]

del sys.argv[0]
sys.path[:] = [ROOT, *(path for path in sys.path if path != f"{ROOT}/bin"), LIBRARIES]
try:
    with open("/proc/self/comm", "wb", 0) as comm:  # as `ps`, `top` and `pgrep` show it: else it would be `python`
        comm.write(sys.argv[0].encode())
except OSError:
    pass

from simple_gpu_scheduler.cli import main  # noqa: E402 - not before it can be found

if sys.argv[0] == "simple_hypersearch":
    main.simple_hypersearch()
main.simple_gpu_scheduler()
