"""From what a trial left on the hosts to a whole, verified trial in the campaign's folder."""

from samovar.campaign.collection.commit import commit_trial, digests, sealed, set_aside
from samovar.campaign.collection.fetch import Expected, collect
from samovar.campaign.collection.verify import Finding, Verification, verify

__all__ = [
    "Expected",
    "Finding",
    "Verification",
    "collect",
    "commit_trial",
    "digests",
    "sealed",
    "set_aside",
    "verify",
]
