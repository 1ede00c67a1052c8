"""Which policies may a file name? One file each, all of one shape."""
