"""Run the hosts of a testbed as a virtual lab on this machine, reached over SSH like real machines.

A host is a set of namespaces of one kernel, or a virtual machine.
"""

from samovar.lab.access import Access as Access
from samovar.lab.access import dial as dial
from samovar.lab.access import read_access as read_access
from samovar.lab.access import shell_command as shell_command
from samovar.lab.kernel import KernelNeeds as KernelNeeds
from samovar.lab.kernel import UserModeConfig as UserModeConfig
from samovar.lab.lifecycle import answering_hosts as answering_hosts
from samovar.lab.lifecycle import down as down
from samovar.lab.lifecycle import up as up
from samovar.lab.machines import available_memory as available_memory
from samovar.lab.machines import lab_memory_bytes as lab_memory_bytes
