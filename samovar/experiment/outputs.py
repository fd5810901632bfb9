"""The metrics, series, figures and tables of the analysis, read from the manifest that Python and R share.

The R package's manifest is analysis/inst/outputs.yaml. A project may add its own manifest,
analysis/outputs.yaml.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator

from samovar.errors import DefinitionError
from samovar.experiment.checks.validate import validate
from samovar.experiment.keys import Strict
from samovar.experiment.yaml_tree import read_text, read_yaml
from samovar.installation import SHIPPED

MANIFEST = SHIPPED / "analysis" / "inst" / "outputs.yaml"
PROJECT_MANIFEST = Path("analysis") / "outputs.yaml"
"""File that describes a project's own metrics, figures and tables, relative to the project's folder."""

COMMON_OPTIONS = {
    "part": "Part to show, or a list of parts.",
    "trial": "Id of the trial to show, or a list of ids.",
    "title": "Title in the report.",
}
"""Options of all figures and tables. Factors are options too; they select the levels to show."""


class _Entry(Strict):
    what: str


class Quantity(_Entry):
    """A quantity of a flow that can be recorded, such as its cwnd. `what` is its name in messages.

    `at` is where the quantity must be recorded: at the flow's sender or receiver, at either end, at both
    ends, or at the bottleneck's router. `sources` are the loggers that record it; `capture` among them means
    a packet capture. If `at` is `flow`, the flow's own generator records the quantity, and `sources` are
    generators.
    `caption` is its name in captions of figures; the name of the logger is added there.
    """

    at: Literal["sender", "receiver", "either", "both", "router", "flow"]
    sources: tuple[str, ...]
    caption: str | None = None

    @property
    def alternatives(self) -> Sequence[Collection[str]]:
        """Sets of recordings, such as `sender:capture`. Any one of the sets is enough for the quantity."""
        ends = {"either": ("sender", "receiver"), "both": ("sender receiver",)}.get(self.at, (self.at,))
        return [{f"{end}:{source}" for end in one.split()} for source in self.sources for one in ends]


class Metric(_Entry):
    """A metric: its unit, the quantities that must be recorded, and the R function that measures it."""

    unit: str
    needs: tuple[str, ...] = ()
    scope: Literal["flow", "application", "trial", "campaign"] = "flow"
    function: str


def _groups(listed: Any) -> Any:
    return [[one] if isinstance(one, str) else one for one in listed] if isinstance(listed, list) else listed


class Series(_Entry):
    """A quantity over time that figures can show: title and unit of its axis, and what must be recorded.

    Each of its `sources` is a group of quantities or loggers. Recording one group is enough; the first is
    preferred.
    """

    title: str
    unit: str
    sources: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_groups)]
    scope: Literal["flow", "application", "trial", "host"] = "flow"
    function: str
    windows: bool = False
    columns: tuple[str, ...] = ()


class OutputOption(_Entry):
    """An option of a figure or table. If `values` is not empty, only these values are allowed.

    A list has at most `most` values. An option of type `measure` is a metric or a series; one of type
    `moment` is a number of seconds, which may be 0.
    """

    type: Literal[
        "text", "part", "flow", "factor", "metric", "series", "measure", "seconds", "moment", "published"
    ] = "text"
    values: tuple[str, ...] = ()
    default: str | float | None = None
    required: bool = False
    most: int | None = None


class Output(_Entry):
    """A figure or table. Its content needs all metrics of at least one group in `shows`."""

    options: Mapping[str, OutputOption] = {}
    shows: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_groups)] = ()
    trials: Literal["analysed", "planned"] = "analysed"


class Outputs(Strict):
    """All recordable quantities, metrics, series, figures and tables, by name."""

    quantities: Mapping[str, Quantity] = {}
    metrics: Mapping[str, Metric] = {}
    series: Mapping[str, Series] = {}
    figures: Mapping[str, Output] = {}
    tables: Mapping[str, Output] = {}

    def records(self, recordings: Set[str], series: Series) -> bool:
        """Return whether a flow's recordings, such as `sender:capture`, suffice to measure a series."""

        def has(source: str) -> bool:
            anywhere = ("sender", "receiver", "router") if series.scope == "host" else ("sender",)
            known = None if series.scope == "host" else self.quantities.get(source)
            alternatives = known.alternatives if known else [{f"{end}:{source}"} for end in anywhere]
            return any(recordings >= set(one) for one in alternatives)

        return any(all(map(has, group)) for group in series.sources)

    def source_text(self, group: Sequence[str]) -> str:
        """Return a group of sources, which are quantities or loggers, as text for messages."""
        return " and ".join(
            self.quantities[one].what if one in self.quantities else f"logger {one}" for one in group
        )

    @property
    def kinds(self) -> Mapping[str, Mapping[str, Output]]:
        """Figures and tables by the key that names them in experiments: `figure` or `table`."""
        return {"figure": self.figures, "table": self.tables}


@cache
def package_outputs() -> Outputs:
    """Return the metrics, figures and tables of the R package."""
    return Outputs.model_validate(yaml.load(read_text(MANIFEST), yaml.CSafeLoader))


def project_outputs(root: Path) -> Outputs:
    """Return the outputs of the R package, overridden by those of a project; raises DefinitionError."""
    ours, path = package_outputs(), root / PROJECT_MANIFEST
    if not path.exists():
        return ours
    tree, problems = read_yaml(path, may_be_empty=True)
    checked = validate(Outputs, tree)
    own = checked.model or Outputs()
    merged = {kind: {**getattr(ours, kind), **getattr(own, kind)} for kind in Outputs.model_fields}
    for name, metric in own.metrics.items():
        for index, need in enumerate(metric.needs):
            checked.check_name(("metrics", name, "needs", index), "quantity", need, merged["quantities"])
    if problems := problems + checked.problems:
        raise DefinitionError(problems)
    return Outputs(**merged)
