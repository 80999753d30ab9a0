"""From bytes to logical lines to jobs. Pure."""
