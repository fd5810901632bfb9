"""Runs a campaign: trial by trial, each set, read back, armed, run, collected, judged and restored."""
