"""How does each site of a run live in a process of its own, on this machine?"""
