"""Make a campaign with any number of trials from a real campaign, such that `fab verify` accepts it.

    python benchmarks/multiply_campaign.py FROM TO TRIALS

Each treatment gets more replicates: copies of the traces of a trial that ran. A copy has the id that such a
replicate would have (the hash in an id does not depend on the replicate). Plan, manifests, checksums and
journal are rewritten to match the copies.
The traces are not changed: measuring a copy gives the same results and takes the same time. The traces are
hard links where the file system permits.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from samovar.campaign.collection.checksums import digests, sums_digest, write_sums
from samovar.campaign.journal import JOURNAL
from samovar.campaign.journal.journal_file import Entry, journal_bytes

Row = tuple[str, int, int, int]
"""A trial's row in plan.json: id, treatment, replicate, block."""


def multiply(source: Path, target: Path, trials: int) -> None:
    """Write the campaign `target` with `trials` trials, copied from the trials of `source` that have run."""
    plan = json.loads((source / "plan.json").read_bytes())
    ran = [row for row in plan["trials"] if (source / "trials" / row[0] / "manifest.json").is_file()]
    if not ran:
        raise SystemExit(f"{source}: none of its trials has run")
    rows = list(islice(_copies(ran), trials))
    (target / "trials").mkdir(parents=True)
    _write_plan(target, plan, [new for _, new in rows])
    events = [Entry(0.0, "campaign-started", {"trials": len(rows)})]
    events.append(Entry(0.0, "files-recorded", {"files": digests(target, "plan.json")}))
    for old, new in rows:
        events += _copy_trial(source / "trials" / old[0], target, new)
    events.append(Entry(0.0, "campaign-finished", {"completed": len(rows), "failed": 0}))
    (target / JOURNAL).write_bytes(journal_bytes(events))


def _copies(ran: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield pairs of a trial that ran and its copy, endlessly; each round has higher replicate numbers."""
    most = max(row[2] for row in ran)
    for turn in count():
        for row in ran:
            replicate = row[2] + turn * most
            id_ = re.sub(r"(^|-)r\d+-(?=[0-9a-f]{6}$)", rf"\1r{replicate}-", row[0])
            yield row, (id_, row[1], replicate, replicate)


def _write_plan(target: Path, plan: Mapping[str, Any], rows: list[Row]) -> None:
    replicates = max(row[2] for row in rows)
    parts = [{**part, "replicates": replicates} for part in plan["parts"]]
    # If replicates differ, a component has one column of values per replicate: keep only the first column.
    for group in plan["treatments"]:
        columns = group["resolved"].items()
        group["resolved"] = {name: one[0] if isinstance(one[0], list) else one for name, one in columns}
    tree = {**plan, "parts": parts, "trials": rows}
    (target / "plan.json").write_text(json.dumps(tree, indent=1, ensure_ascii=False) + "\n")


def _copy_trial(source: Path, target: Path, row: Row) -> Iterator[Entry]:
    """Copy a trial without syncing the copy to disk, and yield the journal's events about the copy."""
    id_, _, replicate, block = row
    place = target / "trials" / id_
    rewritten = shutil.ignore_patterns("SHA256SUMS", "manifest.json")
    shutil.copytree(source, place, ignore=rewritten, copy_function=_link)
    manifest = json.loads((source / "manifest.json").read_bytes())
    manifest |= {"id": id_, "replicate": replicate, "block": block}
    (place / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    write_sums(place, {entry["path"]: entry["sha256"] for entry in manifest["files"]})
    began_s, ended_s = manifest["t_start_s"], manifest["t_end_s"]
    yield Entry(began_s, "trial-started", {"id": id_, "attempt": 1})
    for phase in manifest["phases"]:
        yield Entry(ended_s, "phase", {"id": id_, **phase})
    result = {key: manifest[key] for key in ("outcome", "verdict", "reasons", "overhead_s")}
    yield Entry(ended_s, "trial-finished", {"id": id_, **result, **sums_digest(place)})


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def main() -> None:
    """Multiply the campaign that the arguments of the command line name."""
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    multiply(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))


if __name__ == "__main__":
    main()
