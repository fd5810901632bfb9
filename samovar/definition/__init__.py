"""Experiment, testbed and configuration files read into frozen, typed values; every mistake reported at once."""
