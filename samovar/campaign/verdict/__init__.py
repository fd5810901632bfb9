"""The verdict of a trial: valid, suspect or invalid, with reasons."""
