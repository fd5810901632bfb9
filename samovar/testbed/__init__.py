"""Hosts over SSH: one connection and one shell each, every script recorded and bounded."""

from samovar.testbed.completed import NOT_ENDED, Completed, Record, unrecorded
from samovar.testbed.facts import HostFacts, boot_id_of, disk_free_of, gather_facts
from samovar.testbed.lease import Claim, Lease, LeaseError
from samovar.testbed.power import Machine, machines_of
from samovar.testbed.remote import LostError
from samovar.testbed.session import Session
from samovar.testbed.sessions import HostsError, Sessions
from samovar.testbed.target import Dialer, Target, UnreachableError
from samovar.testbed.transfer import Wanted

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
