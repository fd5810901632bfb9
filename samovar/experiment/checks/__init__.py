"""Check experiment and testbed files: types of values, and whether values fit each other."""
