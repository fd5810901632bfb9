"""The virtual lab: hosts of a testbed as namespaces of one kernel, reached over SSH like real machines."""

from samovar.lab.access import Access, dial, read_access, shell_command
from samovar.lab.kernel import KernelNeeds, UserModeConfig, predict_missing
from samovar.lab.lifecycle import answering_hosts, down, up
from samovar.lab.topology import require_supported_links

__all__ = [
    "Access",
    "KernelNeeds",
    "UserModeConfig",
    "answering_hosts",
    "dial",
    "down",
    "predict_missing",
    "read_access",
    "require_supported_links",
    "shell_command",
    "up",
]
