"""What a plan costs as lines of text: hours, disks, reboots, and where the figures are from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from samovar.cli.wording import clock, columns, counted
from samovar.plan import Cost, Plan
from samovar.units import format_bytes

ROUGH = 2
"""So many digits have sizes: they are estimates."""
LONG_H = 48


def cost_lines(
    plan: Plan, whole: Cost, left: Cost, each: Mapping[str, Cost], possible: Cost | None = None
) -> Iterator[str]:
    """Show what a plan costs, what is left, what of that can run, and what each of several testbeds takes."""
    yield _total("cost", whole)
    if 0 < left.trials < whole.trials:
        yield _total("left", left)
    if possible is not None and 0 < possible.trials < left.trials:
        yield _total("can run", possible)
    rows = [*_times(whole, each), *_disk(left, each), ("hosts", _hosts(plan))]
    yield from columns((f"  {what}", said) for what, said in rows)


def _total(word: str, cost: Cost) -> str:
    times = f"traffic {clock(cost.traffic_s)} + beyond traffic {clock(cost.overhead_s)}"
    if cost.again.attempts:
        times += f" + trials run again {clock(cost.again_s)}"
    if cost.boots:
        times += f" + reboots {clock(cost.reboot_s)}"
    if cost.paths:
        times += f" + measuring paths {clock(cost.path_s)}"
    at_once = f" on {cost.testbeds} testbeds at once" if cost.testbeds > 1 else ""
    return f"{word}: {counted(cost.trials, 'trial')}, {time_taken(cost.total_s)}{at_once} ({times})"


def time_taken(seconds: float) -> str:
    """Write how long a campaign takes, as one plans with it: 42 s, 9.2 min, 3.1 h, 120 h, 5.0 days."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    if seconds < 3597:
        return f"{seconds / 60:.1f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < LONG_H else f"{hours:,.0f} h, {hours / 24:,.1f} days"


def _times(whole: Cost, each: Mapping[str, Cost]) -> Iterator[tuple[str, str]]:
    if each:
        yield from ((f"beyond traffic on {name}", str(cost.overhead)) for name, cost in each.items())
    else:
        yield "beyond traffic", str(whole.overhead)
    if whole.again.attempts:
        yield "run again", str(whole.again)
    if whole.boots:
        yield "reboots", f"{counted(whole.boots, 'time')} that hosts are waited for, {whole.boot}"
    if whole.paths:
        yield "calibration", f"{counted(whole.paths, 'path')} measured before use, {whole.path}"


def _disk(left: Cost, each: Mapping[str, Cost]) -> Iterator[tuple[str, str]]:
    if not left.trials:
        return
    places = {f"{name}: {host}": size for name, one in each.items() for host, size in one.host_bytes.items()}
    here = f"about {format_bytes(left.controller_bytes, ROUGH)} here"
    there = "; ".join(_alike(places or left.host_bytes))
    yield "disk", f"{here}; until a trial is collected, {there}" if there else f"{here}, nothing on hosts"


def _alike(sizes: Mapping[str, int]) -> Iterator[str]:
    """Name the hosts that hold as much as each other together, the largest first."""
    found: dict[str, list[str]] = {}
    for host, size in sorted(sizes.items(), key=lambda item: (-item[1], natural(item[0]))):
        found.setdefault(format_bytes(size, ROUGH), []).append(host)
    for amount, hosts in found.items():
        yield f"{amount} at {'each of ' if len(hosts) > 1 else ''}{', '.join(ranges(hosts))}"


def natural(name: str) -> tuple[str, int, str]:
    """Return what names sort by, so that sta10 comes after sta9."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or -1), name


def ranges(names: Iterable[str]) -> Iterator[str]:
    """Write names that are numbered one after the other as their first and last: sta1–sta12."""
    every = sorted(names, key=natural)
    for _, run in groupby(enumerate(every), key=lambda item: _run(*item)):
        members: Sequence[str] = [name for _, name in run]
        yield from [f"{members[0]}–{members[-1]}"] if len(members) > 2 else members


def _run(place: int, name: str) -> tuple[str, int]:
    stem, number, _ = natural(name)
    return (stem, number - place) if number >= 0 else (name, -1)


def _hosts(plan: Plan) -> str:
    """Say what the order takes of reboots and resets of interfaces, against the order of the file."""
    changes = plan.changes
    pairs = (
        ("reboot", changes.reboots, changes.naive_reboots),
        ("interface reset", changes.resets, changes.naive_resets),
    )
    words = [
        f"{counted(number, thing)} ({naive:,} in the order of the file)"
        for thing, number, naive in pairs
        if number or naive
    ]
    return ", ".join(words) or "0 reboots, 0 interface resets"
