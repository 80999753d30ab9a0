"""What jobs print: their log files, and showing them grouped or line by line."""
