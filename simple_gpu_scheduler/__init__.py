"""Run shell commands from stdin on the GPUs of one machine: `xargs -P` that knows about GPUs.

The command line is the interface; the names here are what a Python program may rely on.
"""

__version__ = "0.2.0.dev0"
