"""YAML files as text with the line and column of every key and value."""
