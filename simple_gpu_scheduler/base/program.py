"""The name of this program in its messages: of its two names, the one that the user typed."""

import os
import sys

LONG, SHORT = "simple_gpu_scheduler", "sgs"
# A program that embeds Python may have no argv.
PROGRAM = SHORT if os.path.basename("".join(getattr(sys, "argv", ())[:1])) == SHORT else LONG
