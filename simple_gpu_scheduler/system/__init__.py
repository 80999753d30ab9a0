"""This Linux machine: processes and what they leave, users, threads, signals, files."""
