"""The virtual lab: a testbed's hosts as namespaces of one kernel, reached over SSH like any machine."""

from samovar.lab.access import Access, read_access
from samovar.lab.dial import Dialer, dial, shell_command
from samovar.lab.kernel import KernelNeeds, choose_kernel
from samovar.lab.lab_status import HostStatus, LabStatus, status
from samovar.lab.lifecycle import down, up
from samovar.lab.predicted_capabilities import predict_missing
from samovar.lab.unsupported_devices import require_supported_links, unsupported_links
from samovar.lab.usermode import UserModeConfig

__all__ = [
    "Access",
    "Dialer",
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
