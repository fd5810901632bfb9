"""Whether hosts can be used: preflight, leases, power, reboots, quarantine, disk space."""
