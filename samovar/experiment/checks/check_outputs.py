"""Check expectations, figures and tables: the names in them, the values of options, and bounds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from samovar.errors import unknown
from samovar.experiment.checks.validate import Loc, Validation
from samovar.experiment.keys import Expect, Experiment, Part
from samovar.experiment.outputs import COMMON_OPTIONS, Output, Outputs
from samovar.units import counted

SEVERAL = ("part", "trial")
"""Options that all figures and tables have. Each accepts one name or a list of names."""
LEAST_PERCENTAGE = 2
"""If a bound or tolerance of a share is at least this large, it was probably meant as a percentage.

A share is at most 1, or slightly more because of measurement errors.
"""


@dataclass(frozen=True)
class OutputChecks:
    """The checks of the expectations, figures and tables of one experiment."""

    checked: Validation[Experiment]
    experiment: Experiment
    outputs: Outputs

    def run(self, keys: Collection[str]) -> None:
        """Check the names of all figures and tables, and the entries of `expect`, `figures` and `tables`.

        Entries of keys that are not in `keys` are not checked.
        """
        complete = self.checked.intact("parts")
        for kind, entries in (("figure", self.experiment.figures), ("table", self.experiment.tables)):
            for index, entry in enumerate(entries):
                where, known = (f"{kind}s", index), self.outputs.kinds[kind]
                self.checked.check_name((*where, kind), kind, str(entry[kind]), known)
                if complete and f"{kind}s" in keys:
                    self._check_entry(kind, where, entry)
        for index, line in enumerate(self.experiment.expect if "expect" in keys else ()):
            where = ("expect", index)
            self.checked.check_name((*where, "metric"), "metric", line.metric, self.outputs.metrics)
            if complete:
                self._check_expect(where, line)

    def _parts(self, names: Collection[str]) -> Mapping[str, Part]:
        """Return the named parts, or all parts if none is named."""
        parts = self.experiment.parts
        return {name: part for name, part in parts.items() if name in names} or parts

    def _check_entry(self, kind: str, where: Loc, entry: Mapping[str, Any]) -> None:
        """Check the options of a figure or table."""
        known = self.outputs.kinds[kind].get(str(entry[kind]))
        parts = self._parts([str(name) for name in _as_list(entry.get("part", []))])
        factors = {factor for part in self.experiment.parts.values() for factor in part.factors}
        names: Mapping[str, Collection[str]] = {
            "metric": self.outputs.metrics,
            "series": self.outputs.series,
            "measure": [*self.outputs.metrics, *self.outputs.series],
            "factor": factors,
            "part": self.experiment.parts,
            "flow": _flow_labels(parts),
        }
        if known is not None and kind == "figure":  # the PDF has a note if a table lacks metrics
            self._check_presence(where, entry, known, names)
        for option, value in entry.items():
            at, values = (*where, option), _as_list(value)
            are_names = bool(values) and all(isinstance(one, str) for one in values)
            if not are_names and (option in SEVERAL or option in factors):
                self.checked.report(at, f"{option}: must be a name or a list of names")
            elif option == "title" and not isinstance(value, str):
                self.checked.report(at, "title: must be a text")
            elif option == "part":
                self._check_names(at, "part", values, self.experiment.parts)
            elif option in factors:
                self._check_levels(at, parts, values)
            elif known is not None and option in known.options:
                info = known.options[option]
                seconds = _seconds(str(value))
                is_time = seconds > 0 or (seconds == 0 if info.type == "moment" else value == "all")
                if info.type in ("seconds", "moment") and not is_time:
                    self.checked.report(at, f"{option}: `{value}` is not a number of seconds such as 6s")
                if info.most is not None and len(values) > info.most:
                    message = f"{option}: at most {counted(info.most, 'value')}, not {len(values)}"
                    self.checked.report((*at, info.most), message)
                what = {"measure": "metric or quantity"}.get(
                    info.type, info.type if info.type in names else option
                )
                self._check_names(at, what, values, names.get(info.type, info.values or None))
            elif known is not None and option not in (kind, *COMMON_OPTIONS):
                every = {*known.options, *factors, *COMMON_OPTIONS}
                self.checked.report(at, unknown("option or factor", option, every), key=True)

    def _check_presence(
        self, where: Loc, entry: Mapping[str, Any], known: Output, names: Mapping[str, Collection[str]]
    ) -> None:
        """Report options that are required but missing, and a time span that ends before it begins."""
        for option, info in known.options.items():
            if info.required and option not in entry:
                accepted = names.get(info.type)
                values = f"; known: {', '.join(accepted or info.values)}" if accepted or info.values else ""
                message = f"figure {entry['figure']} needs the option '{option}': {info.what}{values}"
                self.checked.report((*where, "figure"), message)
        span = [str(entry[one]) for one in ("from", "to") if one in known.options and one in entry]
        if len(span) == 2 and _seconds(span[0]) >= _seconds(span[1]):
            self.checked.report((*where, "to"), f"to: {span[1]} is not after `from`, which is {span[0]}")

    def _check_names(
        self, where: Loc, what: str, names: Collection[Any], known: Collection[str] | None
    ) -> None:
        """Report unknown names in a list. The name of a flow may end in a number, such as bulk-2.

        The number in a flow's name is not checked, because a factor may set the count of flows.
        """
        for index, name in enumerate(map(str, names)):
            stem, _, number = name.rpartition("-")
            if not (what == "flow" and number.isdigit() and stem in (known or ())):
                self.checked.check_name((*where, index), what, name, known)

    def _check_expect(self, where: Loc, line: Expect) -> None:
        """Check a line of the scorecard: the part, flow and levels that it names, and its bounds."""
        if line.part and not self.checked.check_name(
            (*where, "part"), "part", line.part, self.experiment.parts
        ):
            return
        parts = self._parts([line.part or ""])
        if line.flow is not None:
            self._check_names((*where, "flow"), "flow", [line.flow], _flow_labels(parts))
        self._check_bounds(where, line)
        for key, levels in (("where", line.where), ("relative_to", line.relative_to or {})):
            for factor, wanted in levels.items():
                self._check_levels((*where, key, factor), parts, _as_list(wanted))

    def _check_bounds(self, where: Loc, line: Expect) -> None:
        """Report a `relative_to` that equals `where`, and bounds and tolerances of a share in percent."""
        to, metric = line.relative_to or {}, self.outputs.metrics.get(line.metric)
        if to and all(_as_list(line.where.get(name, ())) == [level] for name, level in to.items()):
            message = "`relative_to` selects the same trials as `where`; give other levels"
            self.checked.report((*where, "relative_to"), message)
        of_share = metric is not None and metric.unit == "share" and not to
        for key in ("equals", "within", "below", "above", "between") if of_share else ():
            for index, written in enumerate(_as_list(getattr(line, key))):
                bound = 0.0 if written is None or str(written).endswith("%") else float(written)
                if abs(bound) >= LEAST_PERCENTAGE:
                    message = f"{key}: {line.metric} is a share from 0 to 1"
                    message += f"; write {bound / 100:g} for {bound:g} %"
                    self.checked.report((*where, key, index), message)

    def _check_levels(self, where: Loc, parts: Mapping[str, Part], wanted: Collection[str]) -> None:
        """Report levels that no part has. The last item of the place `where` is the factor's name."""
        factor = str(where[-1])
        factors = {factor for part in parts.values() for factor in part.factors}
        if not self.checked.check_name(where, "factor", factor, factors, key=True):
            return
        known = set[str]()
        for name, part in parts.items():
            if factor in part.factors:
                places = ("factors", factor), ("include",)
                if not all(self.checked.valid("parts", name, *place) for place in places):
                    return  # a level with this label may be invalid
                known |= {*part.factors[factor].labels}
                known |= {treatment[factor].label for treatment in part.include}
        self._check_names(where, f"level of {factor}", wanted, known)


def _seconds(text: str) -> float:
    """Return a number of seconds such as 6s; nan for any other text."""
    try:
        return float(text.removesuffix("s"))
    except ValueError:
        return math.nan


def _flow_labels(parts: Mapping[str, Part]) -> set[str]:
    """Return the labels of the entries of `traffic`, without the numbers of `count` (bulk, not bulk-1)."""
    return {flow.label for part in parts.values() for flow in part.traffic}


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
