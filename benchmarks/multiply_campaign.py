"""Make a campaign of as many trials as wanted out of a real one, in which `fab verify` finds nothing wrong.

    python benchmarks/multiply_campaign.py FROM TO TRIALS

Each treatment gets more replicates: copies of the traces of one that ran, under the id that such a replicate
has (its hash does not hold the replicate). Plan, manifests, checksums and journal are written anew to say so.
Nothing in the traces is changed: copies measure the same, and cost what measuring them costs.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from samovar.campaign.collection.commit import commit_trial, digests, sums_digest
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal.journal_file import Journal

Row = tuple[str, int, int, int]
"""A trial as it stands in plan.json: id, treatment, replicate, block."""


def multiply(source: Path, target: Path, trials: int) -> None:
    """Write the campaign `target` with so many trials of those that `source` has."""
    plan = json.loads((source / "plan.json").read_bytes())
    ran = [row for row in plan["trials"] if (source / "trials" / row[0] / "manifest.json").is_file()]
    if not ran:
        raise SystemExit(f"{source}: none of its trials has run")
    rows = list(islice(_copies(ran), trials))
    for folder in ("trials", "in-progress"):
        (target / folder).mkdir(parents=True)
    _write_plan(target, plan, [new for _, new in rows])
    with Journal(target / JOURNAL) as journal:
        journal.append("campaign-started", 0.0, trials=len(rows))
        journal.append("files-recorded", 0.0, files=digests(target, "plan.json"))
        for old, new in rows:
            _copy_trial(source / "trials" / old[0], target, new, journal)
        journal.append("campaign-finished", 0.0, completed=len(rows), failed=0)


def _copies(ran: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield trials that ran, each with the trial that a copy of it is to be, round after round."""
    most = max(row[2] for row in ran)
    for turn in count():
        for row in ran:
            replicate = row[2] + turn * most
            id_ = re.sub(r"(^|-)r\d+-(?=[0-9a-f]{6}$)", rf"\1r{replicate}-", row[0])
            yield row, (id_, row[1], replicate, replicate)


def _write_plan(target: Path, plan: Mapping[str, Any], rows: list[Row]) -> None:
    replicates = max(row[2] for row in rows)
    parts = [{**part, "replicates": replicates} for part in plan["parts"]]
    # A treatment whose replicates differ has a column of values for each: all have the first's.
    for group in plan["treatments"]:
        columns = group["resolved"].items()
        group["resolved"] = {name: one[0] if isinstance(one[0], list) else one for name, one in columns}
    tree = {**plan, "parts": parts, "trials": rows}
    (target / "plan.json").write_text(json.dumps(tree, indent=1, ensure_ascii=False) + "\n")


def _copy_trial(source: Path, target: Path, row: Row, journal: Journal) -> None:
    id_, _, replicate, block = row
    place = target / "in-progress" / id_
    shutil.copytree(source, place, ignore=shutil.ignore_patterns("SHA256SUMS"))
    manifest = json.loads((place / "manifest.json").read_bytes())
    manifest |= {"id": id_, "replicate": replicate, "block": block}
    (place / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    began_s, ended_s = manifest["t_start_s"], manifest["t_end_s"]
    journal.append("trial-started", began_s, id=id_, attempt=1)
    for phase in manifest["phases"]:
        journal.append("phase", ended_s, id=id_, **phase)
    there = commit_trial(place, target / "trials")
    told = {key: manifest[key] for key in ("outcome", "verdict", "reasons", "overhead_s")}
    journal.append("trial-finished", ended_s, id=id_, **told, **sums_digest(there))


def main() -> None:
    """Take the arguments of the command line."""
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    multiply(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))


if __name__ == "__main__":
    main()
