"""The bundle of a campaign: the text of the PDF, and the files beside it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samovar.errors import CampaignError, DefinitionError, ReportError
from samovar.events import Event, silent
from samovar.report import exit_status, make_bundle
from samovar.report.campaign_data import read_campaign
from samovar.report.scorecard import read_results
from samovar.report.typeset import typeset
from tests.unit.report.report_sample import EXPERIMENT, NAME, Sample, draw_figures, dumbbell, write_campaign

HOSTILE = (
    " #x $y$ *z* _w_ `c` <a> @b \\n \\ \"q\" 's' //c /*d*/ [e] {f} ~ = - + 漢字 é \u202e\x07 " + "x" * 200
)


@pytest.fixture(scope="session")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_figures(tmp_path_factory.mktemp("figures"))


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, figures: Path) -> Path:
    """A sample campaign with its bundle."""
    folder = write_campaign(tmp_path_factory.mktemp("results"), figures=figures)
    make_bundle(folder, silent)
    return folder


def pdf_text(pdf: Path, *options: str) -> str:
    done = subprocess.run(["pdftotext", *options, pdf, "-"], check=True, capture_output=True, timeout=60)
    return " ".join(done.stdout.decode().replace("\u00a0", " ").split())


def bundle_text(folder: Path) -> str:
    return pdf_text(folder / "bundle" / "tplink-buffer.pdf")


def test_the_cover_has_experiment_testbed_time_and_result(campaign: Path) -> None:
    cover = pdf_text(campaign / "bundle" / "tplink-buffer.pdf", "-l", "1")
    for words in (
        "Buffer of the TP-Link TL-PA211KIT by two methods",
        "CAIA-TR-130417A",
        "21 November 2026, 14:34:03 UTC",
        "3 hosts, virtual lab",
        "rate 40 Mbit/s, RTT 2 ms, buffer 546 packets, pfifo",
        "30 trials planned: 28 valid, 1 suspect and 1 invalid",
        "5 of 7 expectations reproduced",
    ):
        assert words in cover
    assert "interrupted" not in cover


def test_the_pages_have_every_section_and_page_numbers(campaign: Path) -> None:
    text = bundle_text(campaign)
    for words in (
        "172.16.10.2/24",
        "in random order within blocks",
        "seed 20130417",
        "39.41–39.50 Mbit/s",
        "Figure 2. Median throughput against rwnd",
        "24 trials",
        "dst: 312 packets dropped by the capture",
        "clock of dst moved by 12 ms",
        "249bb44c6a8baa81b6e4",
        "modified",
        "data.table 1.14.8",
        "tcpdump 4.99.3",
        "sysctl -w net.ipv4.tcp_congestion_control='reno'",
        "lines left out",
        "data/buffer-estimates.csv",
        f"fab report tplink-buffer/{NAME}",
    ):
        assert words in text
    pages = re.findall(r"page (\d+) of (\d+)", text)
    assert [int(number) for number, _ in pages] == list(range(1, len(pages) + 1))
    assert {last for _, last in pages} == {str(len(pages))}


def test_the_scorecard_is_in_the_bundle_as_json(campaign: Path) -> None:
    lines = json.loads((campaign / "bundle" / "scorecard.json").read_text())
    assert [line["verdict"] for line in lines].count("reproduced") == 5
    keys = {"say", "metric", "flow", "part", "where", "expected", "observed", "verdict", "source", "why"}
    assert all(set(line) == keys for line in lines)
    assert exit_status(line["verdict"] for line in lines) == 1


def test_the_checksums_cover_every_file_and_verify(campaign: Path) -> None:
    bundle = campaign / "bundle"
    done = subprocess.run(
        ["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=bundle, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stdout
    summed = {line.split("  ", 1)[1] for line in (bundle / "SHA256SUMS").read_text().splitlines()}
    there = {file.relative_to(bundle).as_posix() for file in bundle.rglob("*") if file.is_file()}
    assert there - summed == {"SHA256SUMS"}


def test_the_ro_crate_describes_itself_the_dataset_and_each_file_of_the_dataset(campaign: Path) -> None:
    bundle = campaign / "bundle"
    graph = json.loads((bundle / "ro-crate-metadata.json").read_text())["@graph"]
    entities = {entity["@id"]: entity for entity in graph}
    assert len(entities) == len(graph)
    assert entities["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    root = entities["./"]
    assert (root["@type"], root["datePublished"]) == ("Dataset", "2026-11-21T14:34:03Z")
    assert "license" not in root
    for part in root["hasPart"]:
        assert entities[part["@id"]]["@type"] == "File"
        assert (bundle / part["@id"]).is_file()
    tools = {entities[one["@id"]]["name"] for one in entities["#analysis"]["instrument"]}
    assert {"samovar", "typst", "R"} <= tools


def test_the_same_campaign_gives_the_same_bytes_in_any_folder(campaign: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / NAME
    shutil.copytree(campaign, copy)
    before = {file: file.read_bytes() for file in (campaign / "bundle").rglob("*") if file.is_file()}
    make_bundle(copy, silent)
    for file, content in before.items():
        assert (copy / file.relative_to(campaign)).read_bytes() == content, file.name


def test_every_font_of_the_pages_is_embedded(campaign: Path) -> None:
    pdf = campaign / "bundle" / "tplink-buffer.pdf"
    listed = subprocess.run(["pdffonts", pdf], check=True, capture_output=True, text=True, timeout=60).stdout
    fonts = [line.split() for line in listed.splitlines()[2:]]
    assert {font[-5] for font in fonts} == {"yes"}
    assert any("LibertinusSerif" in font[0] for font in fonts)


def test_the_cover_of_an_interrupted_campaign_counts_the_trials_that_have_not_run(
    tmp_path: Path, figures: Path
) -> None:
    folder = write_campaign(tmp_path, Sample(finished=False, not_run=5, testbed=dumbbell(4)), figures)
    pdf, _ = make_bundle(folder, silent)
    cover = pdf_text(pdf, "-l", "1")
    assert "This campaign has not finished: 5 of 30 planned trials have not run." in cover
    assert "9 hosts, real machines" in cover
    assert "not run" in pdf_text(pdf, "-f", "4")


def test_text_that_looks_like_markup_is_printed_unchanged(tmp_path: Path, figures: Path) -> None:
    sample = Sample(title="T" + HOSTILE, description="D" + HOSTILE, hostile=HOSTILE)
    text = bundle_text(write_bundle(tmp_path, sample, figures))
    for words in ("#x $y$ *z* _w_ `c` <a> @b", '"q"', "//c /*d*/ [e] {f}", "‹U+202E›‹U+0007›"):
        assert words in text


def test_characters_that_the_fonts_of_the_pdf_lack_cause_a_warning(tmp_path: Path, figures: Path) -> None:
    for title, missing in (("Überlast λ Ж ≥ 2 → η²", ""), ("測試 of a 🚀 queue, 測", "測 試 🚀")):
        events: list[Event] = []
        make_bundle(write_campaign(tmp_path / str(len(title)), Sample(title=title), figures), events.append)
        warnings = [event.values["text"] for event in events if event.name == "warning"]
        lacking = f"the fonts of tplink-buffer.pdf lack {missing}, shown as boxes; report.html shows them"
        assert warnings == ([lacking] if missing else [])


def write_bundle(results: Path, sample: Sample, figures: Path) -> Path:
    folder = write_campaign(results, sample, figures)
    make_bundle(folder, silent)
    return folder


FRAGMENTS = [
    "#",
    "$",
    "*",
    "_",
    "`",
    "<",
    ">",
    "@",
    "\\",
    '"',
    "'",
    "//",
    "/*",
    "[",
    "]",
    "{",
    "}",
    "\\u{",
    "#let x",
]
hostile_text = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), min_size=1, max_size=12).map(
    "".join
)


@given(st.lists(hostile_text, min_size=4, max_size=4))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_at_any_place_of_the_document_can_be_typeset(campaign: Path, words: list[str]) -> None:
    document = minimal_document(*words)
    assert typeset(document, campaign / "bundle", 0.0, "report.typ").startswith(b"%PDF")


def minimal_document(one: str, two: str, three: str, four: str) -> dict[str, object]:
    """Return a document with these words in every place that takes text."""
    row = {"name": one, "value": two}
    line = {
        "say": one, "about": two, "expected": three, "value": four, "sample": one, "glance": two, "verdict": "differs", "why": three,
    }  # fmt: skip
    host = {"name": one, "role": two, "os": three, "column": 0, "y": 0.0, "height": 0.8}
    machine = {"name": one, "role": two, "system": three, "kernel": four, "control": one, "interfaces": [two]}
    table = {"name": one, "title": two, "caption": three, "data": four, "trials": one, "rows": [[two, three]]}
    part = {
        "name": one,
        "title": two,
        "factors": [{"name": three, "levels": [four]}],
        "summary": one,
        "path": two,
    }
    missing = {"state": one, "means": two, "reason": three, "amount": 1, "trials": [four]}
    script = {"name": one, "host": two, "step": three, "lines": [four], "ended": one}
    return {
        "title": one, "experiment": two, "campaign": three, "description": four, "notice": one, "facts": [row],
        "samovar": two, "callout": three, "path_caption": four, "hosts": [{**machine, "tools": [one]}],
        "path": {"columns": 1, "height": 1.0, "hosts": [host], "links": [], "bottleneck": None},
        "treatments": {"order": one, "parts": [{**part, "flows": [two], "recorded": three}]},
        "scorecard": {
            "lines": [line], "brief": [line], "counts": [{"verdict": "differs", "amount": 1}], "headline": one,
        },
        "figures": [], "tables": [{**table, "columns": [{"name": one, "align": "right"}, {"name": two, "align": "left"}]}],
        "omissions": {"groups": [missing], "notes": [one, two], "unavailable": [{"name": one, "reason": two}]},
        "provenance": [{"name": one, "facts": [row]}], "software": {},
        "data": [{"file": one, "holds": two, "rows": 1, "sha256": three}], "regenerate": [one],
        "commands": {"trial": one, "folder": two, "set": [script], "other": [script]},
    }  # fmt: skip


def test_a_table_wider_than_the_page_is_on_a_landscape_page_with_its_heading(
    tmp_path: Path, figures: Path
) -> None:
    folder = write_campaign(tmp_path, figures=figures)
    tables = json.loads((folder / "bundle" / "tables.json").read_text())
    columns = [{"name": f"Measured quantity {number} (packets)", "align": "right"} for number in range(14)]
    wide = {
        "name": "wide",
        "title": "Wide",
        "caption": "",
        "data": "",
        "columns": columns,
        "rows": [["12345.6"] * 14],
    }
    (folder / "bundle" / "tables.json").write_text(json.dumps([*tables, wide]))
    plan = json.loads((folder / "plan.json").read_text())
    plan["tables"].insert(0, {"table": "wide"})
    (folder / "plan.json").write_text(json.dumps(plan))
    pdf, _ = make_bundle(folder, silent)
    pages = subprocess.run(
        ["pdfinfo", "-f", "1", "-l", "-1", pdf], check=True, capture_output=True, timeout=60
    )
    sizes = re.findall(r"size: +([\d.]+) x ([\d.]+)", pages.stdout.decode())
    wider = [number for number, (width, height) in enumerate(sizes, 1) if float(width) > float(height)]
    assert len(wider) == 1
    page = ["pdftotext", "-f", str(wider[0]), "-l", str(wider[0]), str(pdf), "-"]
    text = subprocess.run(page, check=True, capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"^\d Tables$", text, flags=re.M)


def test_a_campaign_that_was_not_analysed_is_refused_with_the_command_to_run(
    tmp_path: Path, figures: Path
) -> None:
    folder = write_campaign(tmp_path, figures=figures)
    (folder / "bundle" / "tables.json").unlink()
    with pytest.raises(ReportError, match=rf"no bundle/tables.json; run `fab analyse .*{NAME}` first"):
        make_bundle(folder, silent)


@pytest.mark.parametrize("changed", ["plan.json", "manifest.json"])
def test_a_campaign_that_has_changed_since_its_analysis_is_refused_with_the_command_to_run(
    tmp_path: Path, changed: str
) -> None:
    folder = write_campaign(tmp_path)
    file = folder / "bundle" / "analysis.json"
    analysis = json.loads(file.read_text())
    campaign = read_campaign(folder)
    file.write_text(json.dumps({**analysis, "inputs_sha256": campaign.inputs_sha256}))
    read_results(folder)
    edited = sorted(folder.rglob(changed))[0]
    edited.write_text(edited.read_text() + "\n")
    with pytest.raises(
        ReportError, match=rf"plan or trials have changed .*; run `fab analyse .*{NAME}` first"
    ):
        read_results(folder)


def test_a_planned_figure_that_was_not_made_is_refused_with_the_command_to_run(
    tmp_path: Path, figures: Path
) -> None:
    folder = write_campaign(tmp_path, figures=figures)
    (folder / "bundle" / "figures.json").write_text("[]")
    with pytest.raises(ReportError, match="no figure throughput-by-rwnd; run `fab analyse"):
        make_bundle(folder, silent)


def test_the_readme_names_the_files_with_which_the_commands_repeat_the_campaign(campaign: Path) -> None:
    readme = " ".join((campaign / "bundle" / "README.txt").read_text().split())
    assert "provenance/experiment.yaml to experiments/tplink-buffer.yaml" in readme
    assert "provenance/testbed.yaml to hosts/lab.yaml" in readme


def test_a_planned_figure_without_data_is_listed_with_the_reason(tmp_path: Path, figures: Path) -> None:
    folder = write_campaign(tmp_path, figures=figures)
    (folder / "bundle" / "figures.json").write_text("[]")
    analysis = json.loads((folder / "bundle" / "analysis.json").read_text())
    names = ("throughput-by-rwnd-window", "rtt-by-rwnd-window")
    analysis["figures_left_out"] = [{"name": name, "reason": "no trial has an rwnd"} for name in names]
    (folder / "bundle" / "analysis.json").write_text(json.dumps(analysis))
    text = pdf_text(make_bundle(folder, silent)[0])
    reason = "throughput-by-rwnd-window could not be made: no trial has an rwnd"
    assert f"Figure {reason}." in text, "the reason is at the place of the figure"
    assert f". {reason}." in text, "the reason is among the omissions"
    assert text.index(f"Figure {reason}") < text.index("Median buffer size estimates.")
    assert reason in (folder / "bundle" / "README.txt").read_text()


def test_warnings_of_the_analysis_are_listed_among_the_omissions(tmp_path: Path, figures: Path) -> None:
    folder = write_campaign(tmp_path, figures=figures)
    analysis = json.loads((folder / "bundle" / "analysis.json").read_text())
    analysis["notes"] = ["window-r1: traces/src.pcap.gz: the gzip stream ends early"]
    (folder / "bundle" / "analysis.json").write_text(json.dumps(analysis))
    text = " ".join(pdf_text(make_bundle(folder, silent)[0]).split())
    assert "Warning of the analysis: window-r1: traces/src.pcap.gz: the gzip stream ends early" in text


def test_a_figure_that_could_not_be_made_is_listed_at_its_place_in_the_order_of_the_plan(
    tmp_path: Path, figures: Path
) -> None:
    folder = write_campaign(tmp_path, figures=figures)
    plan = json.loads((folder / "plan.json").read_text())
    plan["figures"] = [
        {"figure": "rtt-by-rwnd"},
        {"figure": "rtt-cdf", "part": "main", "cc": ["cubic", "cdg"], "title": "RTTs"},
        {"figure": "throughput-by-rwnd"},
    ]
    (folder / "plan.json").write_text(json.dumps(plan))
    analysis = json.loads((folder / "bundle" / "analysis.json").read_text())
    analysis["figures_left_out"] = [{"name": "rtt-cdf-main-cubic-cdg", "reason": "no trial lasts 5 s"}]
    (folder / "bundle" / "analysis.json").write_text(json.dumps(analysis))
    text = pdf_text(make_bundle(folder, silent)[0])
    titles = (
        "Median RTT against rwnd.",
        "Figure rtt-cdf-main-cubic-cdg could",
        "Median throughput against rwnd.",
    )
    places = [text.index(title) for title in titles]
    assert places == sorted(places)


def test_files_of_outputs_that_the_plan_no_longer_has_are_removed(tmp_path: Path, figures: Path) -> None:
    folder = write_campaign(tmp_path, figures=figures)
    bundle = folder / "bundle"
    for name in ("figures/buffer-cdf.pdf", "data/buffer-cdf.csv"):
        (bundle / name).write_text("of an earlier plan")
    make_bundle(folder, silent)
    names = ("buffer-estimates", "rtt-by-rwnd", "summary", "throughput-by-rwnd")
    assert sorted(one.stem for one in (bundle / "data").iterdir()) == [*names]
    assert len([*(bundle / "figures").iterdir()]) == 2
    assert "buffer-cdf" not in (bundle / "SHA256SUMS").read_text()


def test_a_figure_whose_file_is_missing_is_refused(tmp_path: Path, figures: Path) -> None:
    folder = write_campaign(tmp_path, figures=figures)
    (folder / "bundle" / "figures" / "rtt-by-rwnd.pdf").unlink()
    with pytest.raises(ReportError, match=r"rtt-by-rwnd.pdf: no such figure; run `fab analyse"):
        make_bundle(folder, silent)


def test_a_figure_that_is_not_a_pdf_is_refused_and_the_old_report_is_kept(
    tmp_path: Path, figures: Path
) -> None:
    folder = write_bundle(tmp_path, Sample(), figures)
    before = (folder / "bundle" / "tplink-buffer.pdf").read_bytes()
    (folder / "bundle" / "figures" / "rtt-by-rwnd.pdf").write_bytes(b"cut short")
    with pytest.raises(ReportError, match="Typst: "):
        make_bundle(folder, silent)
    assert (folder / "bundle" / "tplink-buffer.pdf").read_bytes() == before


def test_a_folder_without_a_campaign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=r"plan.json is missing; use a folder that `fab run` made"):
        make_bundle(tmp_path, silent)


def test_a_campaign_without_a_journal_is_refused(tmp_path: Path, figures: Path) -> None:
    folder = write_campaign(tmp_path, figures=figures)
    (folder / "journal.jsonl").unlink()
    with pytest.raises(CampaignError, match=r"journal.jsonl"):
        make_bundle(folder, silent)


def test_a_broken_expect_line_is_refused_with_its_place(tmp_path: Path, figures: Path) -> None:
    broken = EXPERIMENT.replace("metric: buffer_method1_packets", "metrc: buffer_method1_packets")
    folder = write_campaign(tmp_path, Sample(experiment=broken), figures)
    with pytest.raises(
        DefinitionError, match=r"experiment.yaml:7:.*unknown key 'metrc'; did you mean 'metric'"
    ):
        make_bundle(folder, silent)


def test_an_unknown_metric_of_an_expectation_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    unknown = EXPERIMENT.replace("metric: buffer_method1_packets", "metric: buffer_method1_packet")
    folder = write_campaign(tmp_path, Sample(experiment=unknown))
    message = (
        "experiment.yaml: expect 'Method 1 finds the buffer': unknown metric 'buffer_method1_packet'; did"
    )
    with pytest.raises(ReportError, match=f"{message} you mean 'buffer_method1_packets'"):
        make_bundle(folder, silent)


def test_events_report_the_scorecard_and_the_bundle(tmp_path: Path, figures: Path) -> None:
    events: list[Event] = []
    folder = write_campaign(tmp_path, figures=figures)
    pdf, _ = make_bundle(folder, events.append)
    assert [event.name for event in events] == ["scorecard", "bundle-made"]
    assert events[0].values == {"reproduced": 5, "differs": 1, "no data": 1}
    assert events[1].values["pdf"] == str(pdf)
    assert pdf.is_file()
