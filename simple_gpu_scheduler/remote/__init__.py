"""The socket of a run: its server and its client."""
