"""The virtual lab: hosts of a testbed as namespaces of one kernel, reached over SSH like real machines."""

from samovar.lab.access import Access, read_access
from samovar.lab.dialer import dial, shell_command
from samovar.lab.kernel import KernelNeeds, choose_kernel, predict_missing
from samovar.lab.lifecycle import HostStatus, LabStatus, down, status, up
from samovar.lab.topology import require_supported_links, unsupported_links
from samovar.lab.usermode import UserModeConfig

__all__ = [
    "Access",
    "HostStatus",
    "KernelNeeds",
    "LabStatus",
    "UserModeConfig",
    "choose_kernel",
    "dial",
    "down",
    "predict_missing",
    "read_access",
    "require_supported_links",
    "shell_command",
    "status",
    "unsupported_links",
    "up",
]
