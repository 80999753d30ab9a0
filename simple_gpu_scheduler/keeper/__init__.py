"""The keeper: a second process that keeps what must not be lost when the scheduler is killed.

It is the parent of the jobs, so that somebody is there to learn their exit codes, and it reads the pipes, so that what
was written to one is on disk. While the scheduler lives, it only passes on what it is told and what it sees. When the
scheduler is gone, it writes into the journal what still runs and how that ends, empties the pipes, and leaves.

`messages` are what the two send each other, `process` and `intake` are the keeper's side, `client` the scheduler's.
"""
