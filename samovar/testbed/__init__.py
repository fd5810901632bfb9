"""Hosts over SSH: one connection and one shell each, every script recorded and bounded."""

from samovar.testbed.completed import NOT_ENDED, Completed, Record, unrecorded
from samovar.testbed.facts import HostFacts, gather_facts
from samovar.testbed.session import Session
from samovar.testbed.sessions import HostsError, Sessions
from samovar.testbed.ssh import Dialer, Target, UnreachableError
from samovar.testbed.transfer import Wanted

__all__ = [
    "NOT_ENDED",
    "Completed",
    "Dialer",
    "HostFacts",
    "HostsError",
    "Record",
    "Session",
    "Sessions",
    "Target",
    "UnreachableError",
    "Wanted",
    "gather_facts",
    "unrecorded",
]
