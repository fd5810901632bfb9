"""One trial: its phases on the hosts, its traffic and what it leaves."""
