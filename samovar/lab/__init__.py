"""The virtual lab: a testbed's hosts as namespaces of one kernel, reached over SSH like any machine."""

from samovar.lab.access import Access, read_access
from samovar.lab.dial import Dialer, dial, shell_command
from samovar.lab.kernel import Needs, choose_kernel
from samovar.lab.lab_status import HostStatus, LabStatus, status
from samovar.lab.lifecycle import down, up
from samovar.lab.predicted_capabilities import foresee
from samovar.lab.unsupported_devices import lacking, require_devices
from samovar.lab.usermode import UserMode

__all__ = [
    "Access",
    "Dialer",
    "HostStatus",
    "LabStatus",
    "Needs",
    "UserMode",
    "choose_kernel",
    "dial",
    "down",
    "foresee",
    "lacking",
    "read_access",
    "require_devices",
    "shell_command",
    "status",
    "up",
]
