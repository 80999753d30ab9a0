"""The socket of a run: its server and its client."""

# What a run says before it acts on a request.
TAKEN = b'{"taken":true}\n'
