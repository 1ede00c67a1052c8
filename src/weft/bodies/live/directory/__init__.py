"""The directory between the sites of a run: each keeps its part, and the desk asks what it shows."""
