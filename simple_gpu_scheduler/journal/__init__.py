"""The journal: the append-only record of a run, one JSON object a line, and reading it back.

`records` turns events into lines, `reading` lines into records, `states` records into what became of each job, `files`
knows where runs are kept, `appender` writes. Its format is documented in `docs/journal.md`.
"""

VERSION = 1
