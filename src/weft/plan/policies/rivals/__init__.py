"""Policies of the literature, kept for comparison."""
