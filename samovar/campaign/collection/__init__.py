"""Collection: the files of a trial fetched from hosts, checked, committed to the campaign, and verified."""

from samovar.campaign.collection.checksums import SUMS, sha256_of, write_sums
from samovar.campaign.collection.commit import commit_trial, digests, set_aside, sums_digest
from samovar.campaign.collection.fetch import Expected, collect, salvage
from samovar.campaign.collection.verify import Verification, verify

__all__ = [
    "SUMS",
    "Expected",
    "Verification",
    "collect",
    "commit_trial",
    "digests",
    "salvage",
    "set_aside",
    "sha256_of",
    "sums_digest",
    "verify",
    "write_sums",
]
