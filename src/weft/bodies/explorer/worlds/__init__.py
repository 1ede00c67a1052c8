"""The worlds, one file per protocol."""
