"""How does a stream travel between fragments? A log of segments, its readers, its gates and its place."""
