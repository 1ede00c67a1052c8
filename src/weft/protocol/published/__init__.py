"""Which protocols were printed otherwise? Machines as published, kept for the explorer to break and for the lab."""
