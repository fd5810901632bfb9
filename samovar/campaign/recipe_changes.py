"""The recipes that a plan's trials go by, and which of them are others than when a campaign ran last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from samovar.campaign.availability.requirements import looks_of, recipes_at
from samovar.campaign.folder import ResumePoint, read_head
from samovar.plan import Plan, Trial
from samovar.plan.groups import Kinds
from samovar.recipes import Catalogue, TrialScripts, digest_recipe_files

PROVENANCE = "provenance.json"
RECIPES = "recipes"


def recipe_digests(plan: Plan, catalogue: Catalogue) -> Mapping[str, str]:
    """Return the files of all recipes that trials of a plan go by, each with a digest; raises RecipeError."""
    hosts = plan.trials[0].resolved.hosts if len(plan.trials) else {}
    files = {file for host in hosts for file in _files(plan, host, catalogue)}
    return digest_recipe_files(sorted(files), catalogue.folder)


def _files(plan: Plan, host: str, catalogue: Catalogue) -> Iterator[Path]:
    kinds = Kinds(plan.table, looks_of(host))
    for kind in range(len(kinds)):
        resolved = kinds.resolved(kind)
        example = Trial(id="", part="", treatment={}, replicate=1, block=1, resolved=resolved)
        yield from (recipe.path for recipe in recipes_at(TrialScripts(example, catalogue, "recipes"), host))
        path, system = resolved.path, resolved.hosts[host].system
        for way in (path.down, path.up) if path is not None and path.router == host else ():
            if way.aqm is not None:
                yield catalogue.recipe("aqm", way.aqm, system).path


def changed_recipes(plan: Plan, standing: ResumePoint, catalogue: Catalogue) -> Sequence[str]:
    """Name the files of a plan's recipes that were others when the campaign ran last whose results stand."""
    if standing.folder is None or not standing.comparison.stands:
        return ()
    recorded = read_head(standing.folder / PROVENANCE).get(RECIPES)
    if not isinstance(recorded, Mapping):
        return ()  # of a release that did not record them
    now = recipe_digests(plan, catalogue)
    return [name for name, digest in now.items() if recorded.get(name, digest) != digest]
