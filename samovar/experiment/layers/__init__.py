"""Layers of an experiment: base files, fragments, profiles and `--set`, and which of them wins."""
