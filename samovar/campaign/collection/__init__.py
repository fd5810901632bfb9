"""Collect the files of a trial: fetch and check them, commit the trial, and verify whole campaigns."""

from samovar.campaign.collection.archive import archive_traces as archive_traces
from samovar.campaign.collection.archive import require_unarchived as require_unarchived
from samovar.campaign.collection.archive import restore_traces as restore_traces
from samovar.campaign.collection.checksums import SUMS as SUMS
from samovar.campaign.collection.checksums import digests as digests
from samovar.campaign.collection.checksums import sha256_of as sha256_of
from samovar.campaign.collection.checksums import sums_digest as sums_digest
from samovar.campaign.collection.checksums import write_sums as write_sums
from samovar.campaign.collection.commit import commit_trial as commit_trial
from samovar.campaign.collection.commit import set_aside as set_aside
from samovar.campaign.collection.fetch import collect as collect
from samovar.campaign.collection.fetch import collected_path as collected_path
from samovar.campaign.collection.fetch import salvage as salvage
from samovar.campaign.collection.verify import ARCHIVE as ARCHIVE
from samovar.campaign.collection.verify import Verification as Verification
from samovar.campaign.collection.verify import verify as verify
