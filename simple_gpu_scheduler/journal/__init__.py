"""The journal: the append-only record of a run, one JSON object per line, and reading it back.

`records` turns events into lines, `read` lines into records, `run_state` records into what became of each job; `files`
knows where runs are kept, `append` writes. The format is documented in `docs/journal.md`.
"""

VERSION = 1
