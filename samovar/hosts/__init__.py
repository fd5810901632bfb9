"""Run scripts on hosts over SSH: one connection and one shell per host, a time limit for each script."""

from samovar.hosts.fact_parsers import Interface as Interface
from samovar.hosts.fact_parsers import Sudo as Sudo
from samovar.hosts.facts import QDISC_ARGUMENTS as QDISC_ARGUMENTS
from samovar.hosts.facts import HostFacts as HostFacts
from samovar.hosts.facts import clock_offset as clock_offset
from samovar.hosts.facts import gather_facts as gather_facts
from samovar.hosts.facts import read_boot_id as read_boot_id
from samovar.hosts.facts import read_free_disk_bytes as read_free_disk_bytes
from samovar.hosts.host_lease import Claim as Claim
from samovar.hosts.host_lease import Lease as Lease
from samovar.hosts.host_lease import LeaseError as LeaseError
from samovar.hosts.power import POWER_ACTIONS as POWER_ACTIONS
from samovar.hosts.power import Machine as Machine
from samovar.hosts.power import machines_of as machines_of
from samovar.hosts.script_result import NOT_ENDED as NOT_ENDED
from samovar.hosts.script_result import ScriptResult as ScriptResult
from samovar.hosts.script_result import discard_result as discard_result
from samovar.hosts.session import Session as Session
from samovar.hosts.sessions import HostsError as HostsError
from samovar.hosts.sessions import Sessions as Sessions
from samovar.hosts.sessions import raise_host_errors as raise_host_errors
from samovar.hosts.target import ConnectionLostError as ConnectionLostError
from samovar.hosts.target import Dialer as Dialer
from samovar.hosts.target import SshTarget as SshTarget
from samovar.hosts.target import UnreachableError as UnreachableError
from samovar.hosts.transfer import RemoteFile as RemoteFile
