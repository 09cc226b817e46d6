"""Experiments: what is run, what is shown, and where it is kept."""
