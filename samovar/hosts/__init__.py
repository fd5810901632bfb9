"""Hosts over SSH: one connection and one shell each, every script recorded and bounded."""

from samovar.hosts.fact_parsers import Interface, Sudo
from samovar.hosts.facts import (
    DEFAULT_PROGRAMS,
    DEFAULT_QDISCS,
    LINUX_CC_NAMES,
    QDISC_ARGUMENTS,
    HostFacts,
    clock_offset,
    gather_facts,
    linux_cc,
    read_boot_id,
    read_free_disk_bytes,
)
from samovar.hosts.host_lease import Claim, Lease, LeaseError
from samovar.hosts.power import POWER_ACTIONS, Machine, machines_of
from samovar.hosts.remote_shell import ConnectionLostError
from samovar.hosts.script_result import NOT_ENDED, Recorder, ScriptResult, discard_result
from samovar.hosts.session import Session
from samovar.hosts.sessions import HostsError, Sessions, raise_host_errors
from samovar.hosts.target import Dialer, SshTarget, UnreachableError
from samovar.hosts.transfer import RemoteFile

__all__ = [
    "DEFAULT_PROGRAMS",
    "DEFAULT_QDISCS",
    "LINUX_CC_NAMES",
    "NOT_ENDED",
    "POWER_ACTIONS",
    "QDISC_ARGUMENTS",
    "Claim",
    "ConnectionLostError",
    "Dialer",
    "HostFacts",
    "HostsError",
    "Interface",
    "Lease",
    "LeaseError",
    "Machine",
    "Recorder",
    "RemoteFile",
    "ScriptResult",
    "Session",
    "Sessions",
    "SshTarget",
    "Sudo",
    "UnreachableError",
    "clock_offset",
    "discard_result",
    "gather_facts",
    "linux_cc",
    "machines_of",
    "raise_host_errors",
    "read_boot_id",
    "read_free_disk_bytes",
]
