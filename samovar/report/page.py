"""Make pages for browsers, each in one file: reports with the content of their PDFs; index of campaigns."""

from __future__ import annotations

import json
import os
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeVar

from samovar.atomic_files import write_whole
from samovar.campaign import read_plan
from samovar.campaign.journal import fold, read_journal
from samovar.errors import SamovarError
from samovar.events import Emit, Event
from samovar.report.campaign_data import NOT_RUN, Campaign, Json, read_json
from samovar.report.figure_curves import TableRow, read_curves
from samovar.report.number_format import moment
from samovar.report.overview import reasons
from samovar.report.provenance import script_body
from samovar.report.scorecard import VERDICTS
from samovar.report.typeset import (
    TEMPLATES,
    change_texts,
    draw_pictures,
    missing_characters,
    printable,
    typeset,
)
from samovar.secrets import redacted

INDEX, PAGE = "index.html", "report.html"
PAGE_TEMPLATES = TEMPLATES / "page"
SCRIPTS = ("uPlot", "elements.js", "figures.js", "trials.js")
LIBRARY = ("uPlot.LICENSE", "uPlot.iife.min.js")
FOLDERS = ("commands", "facts", "logs", "traces")
"""The folders of a trial whose files are linked."""
Value = TypeVar("Value", bound=Hashable)


class ListedCampaign(NamedTuple):
    """A campaign, its name on the page, and the ids of its trials that the page lists."""

    name: str
    campaign: Campaign
    ids: Collection[str]


def write_report(
    kind: str, document: Json, pdf: Path, t_s: float, campaigns: Sequence[ListedCampaign], emit: Emit
) -> None:
    """Write a report as a PDF, and beside it as a page; `kind` is `report`, `study` or `comparison`.

    `t_s` is the date of the PDF in seconds since the epoch. The same campaigns in the same folders always
    give the same bytes. Emits a warning if the PDF's fonts lack characters. Raises ReportError if a picture
    or the PDF cannot be made.
    """
    if missing := missing_characters(document):
        text = f"the fonts of {pdf.name} lack {' '.join(missing[:20])}, shown as boxes; {PAGE} shows them"
        emit(Event("warning", {"text": text}))
    write_whole(pdf, typeset(document, pdf.parent, t_s, f"{kind}.typ"))
    write_whole(pdf.with_name(PAGE), _page(document, pdf, campaigns, f"{kind}.html.j2"))


def _page(document: Json, pdf: Path, campaigns: Sequence[ListedCampaign], template: str) -> bytes:
    """Return the page of a report: the document that the PDF shows, its figures as curves, and the trials.

    A figure with the key `of` shows trials of the campaign that this key names. Any other figure shows trials
    of all campaigns, with the campaign's name before each id.
    """
    folder = pdf.parent
    table = trial_table(campaigns, folder)
    known: dict[str, dict[str, TableRow]] = {"": {}}
    for place, row in enumerate(table["rows"]):
        texts = [row["campaign"], row["part"], *row["levels"], f"replicate {row['replicate']}"]
        found = TableRow(place, texts)
        known[""][f"{row['campaign']}:{row['id']}"] = found
        known.setdefault(row["campaign"], {})[row["id"]] = found
    testbeds = document.get("testbeds") or ([document] if "path" in document else [])
    pictures = {name: data_url(one) for name, one in draw_pictures(document, testbeds, folder).items()}
    curves = {
        one["file"]: read_curves(one, folder, known[one.get("of", "")])
        for one in document["figures"]
        if one["file"]
    }
    details = json.dumps(trial_details(campaigns), ensure_ascii=False)
    drawn = {
        "pictures": pictures,
        "curves": {file: one for file, one in curves.items() if one},
        "details": b64encode(zlib.compress(details.encode(), 9)).decode(),  # in the zlib format (RFC 1950)
    }
    return render(template, {**document, "pdf": pdf.name, "trial_table": table}, SCRIPTS, drawn)


def trial_table(campaigns: Sequence[ListedCampaign], page_folder: Path) -> Json:
    """Return the factors, and a row for each trial in the order of the plans.

    A row has the campaign, its folder relative to `page_folder`, and the trial's id, part, levels (empty for
    a factor that the part does not have), replicate, block, state and reasons.
    """
    parts = [part for _, campaign, _ in campaigns for part in campaign.plan.parts]
    factors = list(dict.fromkeys(factor for part in parts for factor in part.factors))
    rows = [
        {
            "campaign": name,
            "folder": Path(os.path.relpath(campaign.folder, page_folder.resolve())).as_posix(),
            "id": trial.id,
            "part": trial.part,
            "levels": [trial.treatment.get(factor, "") for factor in factors],
            "replicate": trial.replicate,
            "block": trial.block,
            "state": campaign.trial_state(trial.id),
            "reasons": "; ".join(reasons(campaign, trial.id)),
            "recorded": trial.id in campaign.manifests,
        }
        for name, campaign, ids in campaigns
        for trial in campaign.plan.trials
        if trial.id in ids
    ]
    several = {"campaigns": len(campaigns) > 1, "parts": len({part.name for part in parts}) > 1}
    return {"factors": factors, **several, "rows": rows}


def trial_details(campaigns: Sequence[ListedCampaign]) -> Json:
    """Return checks, files and scripts of each listed trial, as indices into lists without duplicates.

    `scripts` has pairs of a file's name and its text, from which secrets were removed during the run.
    """
    checks: dict[tuple[str, ...], int] = {}
    names: dict[str, int] = {}
    scripts: dict[str, int] = {}
    trials = [
        {
            "checks": [_place(checks, one) for one in _checks(campaign.manifests.get(id_) or {})],
            "files": [_place(names, one) for one in _files(campaign.folder / "trials" / id_)],
            "scripts": [
                (_place(names, f"commands/{file.name}"), _place(scripts, script_body(file)))
                for file in sorted((campaign.folder / "trials" / id_ / "commands").glob("*.sh"))
            ],
        }
        for _, campaign, ids in campaigns
        for id_ in campaign.plan.ids
        if id_ in ids
    ]
    shown = [[redacted(text, {}) for text in check] for check in checks]
    return {"checks": shown, "names": list(names), "scripts": list(scripts), "trials": trials}


def _place(values: dict[Value, int], value: Value) -> int:
    """Return the index of a value in the order of first use, so that repeated values are stored once."""
    return values.setdefault(value, len(values))


def _checks(manifest: Json) -> Iterator[tuple[str, ...]]:
    """Yield each check's result, name, host, requested and observed value."""
    for one in manifest.get("checks") or []:
        result = "passed" if one.get("ok") else str(one.get("severity") or "failed")
        yield (result, *(str(one.get(key) or "") for key in ("check", "host", "requested", "observed")))


def _files(trial: Path) -> Iterator[str]:
    """Yield the paths of a trial's files, relative to the trial's folder."""
    for folder in FOLDERS:
        yield from sorted(f"{folder}/{one.name}" for one in (trial / folder).glob("*"))


def render(template: str, values: Json, scripts: tuple[str, ...] = (), drawn: Json | None = None) -> bytes:
    """Return a page made from a template; the same values give the same bytes.

    Texts are escaped. Unprintable characters and apparent secrets are replaced in `values`, but not in
    `drawn`, which has Base64. The page's content security policy allows only the scripts in `scripts`, and no
    access to the network.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # slow to import

    environment = Environment(
        loader=FileSystemLoader(PAGE_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    sources = [_source(name) for name in scripts]
    texts = change_texts(printable(values), partial(redacted, environment={}))
    html = environment.get_template(template).render(
        **texts,
        **(drawn or {}),
        style=_source("style.css"),
        scripts=sources,
        script_hashes=[b64encode(sha256(one.encode()).digest()).decode() for one in sources],
        next_figure=partial(next, count(1)),
        next_table=partial(next, count(1)),
    )
    return (html.rstrip() + "\n").encode()


def _source(name: str) -> str:
    """Return the text of one of the page's template files; the text of uPlot begins with its licence."""
    if name != "uPlot":
        return (PAGE_TEMPLATES / name).read_text("utf-8")
    licence, code = ((PAGE_TEMPLATES / one).read_text("utf-8") for one in LIBRARY)
    return f"/*\n{licence.strip()}\n*/\n{code}"


def data_url(picture: bytes) -> str:
    """Return a picture, SVG or PNG, as a data URL."""
    kind = "png" if picture.startswith(b"\x89PNG") else "svg+xml"
    return f"data:image/{kind};base64,{b64encode(picture).decode()}"


def write_index(results: Path, campaigns: Sequence[Path], others: Iterable[Path]) -> tuple[Path, list[str]]:
    """Write index.html into a results folder; return its path, and a line for each unreadable campaign.

    `campaigns` are the folders of campaigns in the order of the index; `others` are the folders of studies
    and comparisons. All links are relative, so that the results folder can be moved.
    """
    rows: list[Json] = []
    unread: list[str] = []
    for folder in campaigns:
        try:
            rows.append(_row(folder, results))
        except (SamovarError, OSError) as error:
            unread.append(f"{folder}: {error}")
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            unread.append(f"{folder}: damaged plan.json, journal.jsonl or bundle/scorecard.json: {error}")
    linked = [{"name": _link(one, results), "reports": _reports(one, results)} for one in others]
    values = {"rows": rows, "others": linked, "unread": unread, "folder": results.resolve().parent.name}
    write_whole(results / INDEX, render("index.html.j2", values, ("index.js",)))
    return results / INDEX, unread


def _link(path: Path, results: Path) -> str:
    """Return the path of a file or folder relative to the results folder."""
    return Path(os.path.relpath(path.resolve(), results.resolve())).as_posix()


def _row(folder: Path, results: Path) -> Json:
    """Return a campaign's row."""
    plan, journal = read_plan(folder), read_journal(folder / "journal.jsonl")
    state = fold(journal)
    states = Counter(state.trials[one].result if one in state.trials else NOT_RUN for one in plan.ids)
    bundle = folder / "bundle"
    verdicts = Counter(
        str(one.get("verdict", "")) for one in read_json(bundle / "scorecard.json", list, optional=True)
    )
    return {
        "experiment": plan.experiment,
        "campaign": folder.name,
        "title": plan.title,
        "testbed": plan.testbed,
        "when": moment(journal[0].t_s) if journal else "",
        "trials": len(plan.ids),
        "states": [{"state": word, "amount": amount} for word, amount in states.items()],
        "verdicts": [{"verdict": word, "amount": verdicts[word]} for word in VERDICTS if verdicts[word]],
        "folder": _link(folder, results),
        "reports": _reports(bundle, results),
    }


def _reports(folder: Path, results: Path) -> list[Json]:
    """Return links to the report's page and to the PDFs that exist in a folder."""
    files = [("page", folder / PAGE), *(("PDF", pdf) for pdf in sorted(folder.glob("*.pdf")))]
    return [{"name": name, "link": _link(file, results)} for name, file in files if file.is_file()]
