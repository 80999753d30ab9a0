"""The loop, its state, and the functions over it."""
