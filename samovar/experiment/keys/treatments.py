"""The treatments of a part: every combination of levels, without those excluded, with those included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from samovar.experiment.keys.experiment_file import Part
from samovar.experiment.keys.levels import Level

Treatment = Mapping[str, Level]


def treatments_of(part: Part) -> Iterator[Treatment]:
    """Yield every treatment of a part; the last factor varies fastest, and what is included comes last.

    Raises ValueError for an included line that cannot be read, which the checks report before.
    """
    for levels in product(*(factor.levels for factor in part.factors.values())):
        treatment = dict(zip(part.factors, levels, strict=True))
        if not is_excluded(part, treatment):
            yield treatment
    yield from included_treatments(part)


def is_excluded(part: Part, treatment: Treatment) -> bool:
    """Say whether one of a part's exclude lines matches a treatment."""
    return any(matches(line, treatment) for line in part.exclude)


def matches(line: Mapping[str, str | tuple[str, ...]], treatment: Treatment) -> bool:
    """Say whether a treatment has the levels that a line gives for some of its factors."""
    return all(
        name in treatment and treatment[name].label in wanted_labels(wanted) for name, wanted in line.items()
    )


def wanted_labels(wanted: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one label or several as several."""
    return (wanted,) if isinstance(wanted, str) else wanted


def included_treatments(part: Part) -> Iterator[Treatment]:
    """Yield the treatments that a part's include lines add, in the order of its factors."""
    for line in part.include:
        yield {name: included_level(part, name, line[name]) for name in part.factors}


def included_level(part: Part, name: str, written: object) -> Level:
    """Return the level that an include line gives: one of the factor's, by its label, or a new one.

    Raises ValueError or pydantic's ValidationError for one that cannot be read.
    """
    factor = part.factors[name]
    known = factor.level(written) if isinstance(written, str) else None
    if known is None and isinstance(written, str) and factor.linked:
        raise ValueError(f"'{written}' is no level of {name}; expected one of {', '.join(factor.labels)}, "
                         "or a mapping with the values of a new one")  # fmt: skip
    return known or factor.read(written)
