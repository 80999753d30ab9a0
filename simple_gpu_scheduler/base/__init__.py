"""What every room may use: errors, units, jobs and their outcomes, text for people, time."""
