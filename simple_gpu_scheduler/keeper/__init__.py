"""The keeper: a second process that keeps what must not be lost when the scheduler is killed.

It is the parent of the jobs, so that their exit codes are not lost, and it reads the pipes, so that their contents get
to disk. It starts and ends attempts as the scheduler says, and tells how they ended. Once the scheduler is gone, it
records in the journal what is still running and how that ends, empties the pipes, and exits.

`messages` are what the two say to each other, and `connection` is how that travels. `process`, `children` and `intake`
are the keeper's side, `client` and `survivors` the scheduler's.
"""
