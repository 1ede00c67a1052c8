"""`make check-long`: the tests that take minutes, within a budget, going on where the last time ended."""
