"""Which protocols of others are compared with ours? Kept for the lab."""
