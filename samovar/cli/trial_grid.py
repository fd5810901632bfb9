"""The trials of a campaign as a grid: a row per treatment, a character per replicate that needs no colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from samovar.campaign.journal import CampaignState, TrialState, is_open
from samovar.cli.wording import columns
from samovar.plan import Plan

OPEN, RUNNING, BLOCKED, FAILED = "open", "running", "cannot run", "failed"
GLYPHS: Mapping[str, str] = {
    "valid": "✓",
    "suspect": "?",
    "invalid": "!",
    FAILED: "✗",
    "interrupted": "/",
    RUNNING: "»",
    OPEN: "·",
    BLOCKED: "−",
}
"""How a trial stands, and the character that says so; the legend names those that are there."""
GAP = "  "


@dataclass(frozen=True)
class Row:
    """A treatment: its label, and how each of its trials stands, in the order of replicates."""

    label: str
    states: tuple[str, ...]

    @property
    def settled(self) -> bool:
        """Whether all of it is done and nothing of it is odd."""
        return set(self.states) <= {"valid"}


def standing(trial: TrialState | None, blocked: bool = False) -> str:
    """Say in a word of GLYPHS how a trial stands."""
    if blocked and is_open(trial):
        return BLOCKED
    if trial is None:
        return OPEN
    if trial.status == "in flight":
        return RUNNING
    return (trial.verdict or "valid") if trial.status == "completed" else trial.status


def rows_of(plan: Plan, words: Mapping[str, str]) -> list[Row]:
    """Put a plan's trials in rows; `words` says how each that is not open stands."""
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    varying = _varying(plan)
    for trial in plan.trials:
        label = " ".join(level for name, level in trial.treatment.items() if name in varying[trial.part])
        part = "" if trial.part == "main" else trial.part
        key = (trial.part, " ".join(filter(None, (part, label))) or "all")
        found.setdefault(key, []).append((trial.replicate, words.get(trial.id, OPEN)))
    return [Row(label, tuple(word for _, word in sorted(cells))) for (_, label), cells in found.items()]


def _varying(plan: Plan) -> Mapping[str, set[str]]:
    """Name the factors of each part that have more than one level among its trials."""
    levels: dict[str, dict[str, set[str]]] = {}
    for trial in plan.trials:
        seen = levels.setdefault(trial.part, {})
        for name, level in trial.treatment.items():
            seen.setdefault(name, set()).add(level)
    return {part: {name for name, of in seen.items() if len(of) > 1} for part, seen in levels.items()}


def words_of(plan: Plan, state: CampaignState) -> dict[str, str]:
    """Say how each trial of a plan stands that is not open."""
    words = {t.id: standing(state.trials.get(t.id), t.id in state.blocked) for t in plan.trials}
    return {id_: word for id_, word in words.items() if word != OPEN}


def matrix_lines(rows: Sequence[Row], width: int, height: int) -> Iterator[str]:
    """Draw rows in as many columns as fit; of too many, those that are not settled first."""
    if not rows:
        return
    cells = [f"{row.label:<{_label_width(rows)}} {_strip(row.states, width // 2)}" for row in rows]
    across = max(1, (width + len(GAP)) // (max(map(len, cells)) + len(GAP)))
    room = across * max(1, height - 2)
    shown = list(range(len(rows)))
    if len(rows) > room:
        shown = sorted(sorted(shown, key=lambda index: rows[index].settled)[:room])
    down = -(-len(shown) // across)
    grid = [[cells[index] for index in shown[start::down]] for start in range(down)]
    yield from columns(row + [""] * (across - len(row)) for row in grid)
    if len(shown) < len(rows):
        yield f"… {len(rows) - len(shown):,} more treatments"
    yield legend(word for row in rows for word in row.states)


def _label_width(rows: Sequence[Row]) -> int:
    return max(len(row.label) for row in rows)


def _strip(states: Sequence[str], room: int) -> str:
    """Write a character per replicate; of more than there is room for, how many stand how."""
    if len(states) <= max(room, 8):
        return "".join(GLYPHS.get(word, "·") for word in states)
    return " ".join(f"{number}{GLYPHS.get(word, '·')}" for word, number in _counted(states))


def legend(words: Iterable[str]) -> str:
    """Say what the characters mean, and how many trials stand so."""
    return GAP.join(f"{GLYPHS.get(word, '·')} {number:,} {word}" for word, number in _counted(words))


def _counted(words: Iterable[str]) -> list[tuple[str, int]]:
    counts = Counter(words)
    return [(word, counts[word]) for word in GLYPHS if counts[word]]
