"""Hosts over SSH: one connection and one shell each, every script recorded and bounded."""

from samovar.hosts.facts import HostFacts, boot_id_of, disk_free_of, gather_facts
from samovar.hosts.host_lease import Claim, Lease, LeaseError
from samovar.hosts.power import Machine, machines_of
from samovar.hosts.remote_shell import LostError
from samovar.hosts.script_result import NOT_ENDED, Completed, Record, unrecorded
from samovar.hosts.session import Session
from samovar.hosts.sessions import HostsError, Sessions
from samovar.hosts.target import Dialer, Target, UnreachableError
from samovar.hosts.transfer import Wanted

__all__ = [
    "NOT_ENDED",
    "Claim",
    "Completed",
    "Dialer",
    "HostFacts",
    "HostsError",
    "Lease",
    "LeaseError",
    "LostError",
    "Machine",
    "Record",
    "Session",
    "Sessions",
    "Target",
    "UnreachableError",
    "Wanted",
    "boot_id_of",
    "disk_free_of",
    "gather_facts",
    "machines_of",
    "unrecorded",
]
