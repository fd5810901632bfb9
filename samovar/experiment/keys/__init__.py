"""The keys of experiment, testbed, study and configuration files, with their types."""
