"""What every room may know: errors, units, jobs and their outcomes, text for people, time."""
