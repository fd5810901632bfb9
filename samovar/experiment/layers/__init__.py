"""Merge the layers of an experiment: the files it extends, fragments, profiles, `--set`, host settings."""
