"""What commands are read from: files, pipes, growing files, and the thread that reads them."""
