"""Validation of experiment and testbed files beyond the type of each value."""
