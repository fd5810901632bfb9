"""Who is at work on hosts now: looked at before anything is done that is slow, or would disturb them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from samovar.campaign.availability.leases import LeaseRequest, holder_of, refusal, this_process
from samovar.errors import TestbedError
from samovar.hosts import HostsError, Lease, LeaseError, Session, Sessions

FORCED = "forced.jsonl"
"""The file of a results folder that tells which campaigns `--force` has disturbed, a JSON object a line."""
ADVICE = "accepted: waiting for its end, or --force, which spoils the trial that runs there"


def leases_of(sessions: Sessions) -> Mapping[str, Lease]:
    """Ask the hosts that answer who holds them; those that do not are for whoever uses them to find."""
    found = sessions.map(_lease)
    return {host: lease for host, lease in found.items() if lease}


def _lease(session: Session) -> Lease | None:
    try:
        return session.lease()
    except TestbedError:
        return None


def require_free(sessions: Sessions, claimant: LeaseRequest) -> None:
    """Refuse hosts that a campaign could not have. Raises LeaseError or HostsError with who has them."""
    held = {host: lease for host, lease in leases_of(sessions).items() if not claimant.right(lease)}
    _raise({host: LeaseError(refusal(host, lease)) for host, lease in held.items()})


def require_idle(sessions: Sessions, command: str, results: Path, force: bool) -> Mapping[str, Lease]:
    """Refuse to disturb hosts on which a campaign is at work, or with `force` write down that it is.

    Returns the leases of those. A controller that is gone disturbs nobody. Raises LeaseError or HostsError.
    """
    busy = {host: lease for host, lease in leases_of(sessions).items() if is_at_work(lease)}
    if not force:
        _raise({host: LeaseError(refusal(host, lease, ADVICE)) for host, lease in busy.items()})
    for host, lease in busy.items():
        _record(results / FORCED, command, host, lease)
    return busy


def is_at_work(lease: Lease) -> bool:
    """Tell whether somebody else holds a host who is there still, as far as that can be told from here."""
    holder = holder_of(lease)
    return lease.alive and not holder.is_gone and holder != this_process()


def _record(file: Path, command: str, host: str, lease: Lease) -> None:
    held = {key: lease.values.get(key, "") for key in ("owner", "command", "campaign", "testbed")}
    line = json.dumps({"t_s": round(time.time(), 6), "command": command, "host": host, "held": held})
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(line + "\n")
        out.flush()
        os.fsync(out.fileno())


def _raise(errors: Mapping[str, LeaseError]) -> None:
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if errors:
        raise HostsError(errors)
