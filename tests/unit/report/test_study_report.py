"""The report of a study of several campaigns."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import typst

from samovar.campaign import read_plan
from samovar.errors import DefinitionError, ReportError
from samovar.events import silent
from samovar.experiment import load_study_report
from samovar.experiment.keys.experiment_file import StudyReport
from samovar.report.document import compose, output_names
from samovar.report.scorecard import read_results
from samovar.report.study_report import ReportedCampaign, compose_study, make_study
from samovar.report.typeset import TEMPLATES
from tests.unit.report.page_text import Text, words_only_in_pdf
from tests.unit.report.report_sample import draw_figures, set_layout, write_campaign

ROOT = Path(__file__).parents[3]
SECTIONS = [
    {"title": "The buffer", "experiment": "tplink-buffer", "follows": "section IV", "deviation": "On Linux."},
    {"title": "The windows", "experiment": "tplink-buffer", "figures": [], "tables": []},
]
STUDY = {"study": "tplink", "title": "Two parts of one", "authors": "A. Author", "sections": SECTIONS}


def study(**keys: object) -> StudyReport:
    return StudyReport.model_validate({**STUDY, **keys})


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    figures = draw_figures(tmp_path_factory.mktemp("figures"))
    folder = write_campaign(tmp_path_factory.mktemp("results"), figures=figures)
    first = read_plan(folder).ids[0]
    data = f"trial,flow,quantity,unit,t_s,value\n{first},bulk,rtt,ms,0,1\n{first},bulk,rtt,ms,1,2\n"
    (folder / "bundle" / "data" / "rtt-by-rwnd.csv").write_text(data)
    set_layout(folder, "rtt-by-rwnd", kind="line", x="t_s", y="value", facets=["quantity"])
    return folder


@pytest.fixture(scope="module")
def study_folder(campaign: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    make_study(study(), lambda _: campaign, folder, silent)
    return folder


def pdf_text(pdf: Path) -> str:
    done = subprocess.run(["pdftotext", pdf, "-"], check=True, capture_output=True, timeout=60)
    return " ".join(done.stdout.decode().replace("\u00a0", " ").split())


def test_the_document_has_cover_sections_and_checksums_of_campaigns(
    study_folder: Path, campaign: Path
) -> None:
    text = pdf_text(study_folder / "tplink.pdf")
    sums = json.loads((study_folder / "campaigns.json").read_text())[0]["sha256"]
    for words in (
        "Two parts of one",
        "A. Author",
        "5 of 7 expectations reproduced",
        "The windows",
        "On Linux.",
    ):
        assert words in text
    assert set(sums) == {"plan.json", "journal.jsonl"}
    assert all(value[:16] in text.replace(" ", "") for value in sums.values())


def test_the_page_has_every_word_of_the_pdf_and_links_to_the_trials_of_the_campaign(
    study_folder: Path,
) -> None:
    page = study_folder / "report.html"
    in_drawing = {"direction", "left", "linux", "right"}  # words of the drawing of the path in the PDF
    assert words_only_in_pdf(study_folder / "tplink.pdf", page) <= in_drawing | {"contents"}
    text = Text(page.read_text())
    files = [one for one in text.links if not one.startswith(("data:", "#"))]
    assert [one for one in files if not (study_folder / one).is_file()] == []
    assert sum(one.endswith("manifest.json") for one in files) == 30
    curves = re.findall(r'class="curves">(.*?)</script>', page.read_text())
    assert len(curves) == 1
    places = {curve["at"][0] for panel in json.loads(curves[0])["panels"] for curve in panel["curves"]}
    assert places == {0}, "curves refer to the first of the 30 trials"


def test_the_cover_counts_expectations_by_section_if_it_has_no_room_to_list_them(campaign: Path) -> None:
    parsed = study()
    found, results = read_results(campaign)

    def brief(repetitions: int) -> list[tuple[str, str, str]]:
        judged = results * repetitions
        one = ReportedCampaign("tplink-buffer", found, judged, compose(found, judged), list(parsed.sections))
        card = compose_study(parsed, [(section, one) for section in parsed.sections], [one])["scorecard"]
        return [(line["verdict"], line["say"], line["glance"]) for line in card["brief"]]

    assert [say for _, say, _ in brief(1)] == [result.say for result in results]
    assert brief(2) == [("differs", "The buffer (section IV)", "10 of 14")]


def test_a_testbed_whose_file_was_not_recorded_has_no_drawing(campaign: Path, tmp_path: Path) -> None:
    bare = campaign.parent / "bare"
    shutil.copytree(campaign, bare)
    (bare / "testbed.yaml").unlink()
    pdf, _ = make_study(study(), lambda _: bare, tmp_path, silent)
    assert "Figure 1. Median throughput" in pdf_text(pdf)
    page = " ".join("".join(Text((tmp_path / "report.html").read_text()).words).split())
    assert "Figure 1. Median throughput" in page


def test_the_data_come_from_the_analysis_not_from_an_earlier_report(campaign: Path, tmp_path: Path) -> None:
    copy = campaign.parent / "copy"
    shutil.copytree(campaign, copy)
    earlier = copy / "bundle" / "data" / "summary.csv"
    earlier.write_text("values of an earlier analysis")
    for _ in range(2):
        make_study(study(), lambda _: copy, tmp_path, silent)
        table = tmp_path / "data" / "tplink-buffer" / "summary.csv"
        assert table.read_bytes() == (copy / "tables" / "summary.csv").read_bytes()
        earlier.unlink(missing_ok=True)


def test_the_cover_and_the_commands_name_the_campaign_of_which_only_a_part_is_shown(campaign: Path) -> None:
    found, results = read_results(campaign)
    part = {"picked": "cc=cdg", "options": "--only cc=cdg", "trials": found.plan.ids[:4]}
    found = replace(found, analysis={**found.analysis, "part": part})
    parsed = study()
    one = ReportedCampaign("tplink-buffer", found, results, compose(found, results), list(parsed.sections))
    document = compose_study(parsed, [(section, one) for section in parsed.sections], [one])
    assert document["notice"] == "tplink-buffer: 4 of 30 trials are shown (picked: cc=cdg)."
    assert "fab analyse tplink-buffer --only cc=cdg" in document["regenerate"]


def test_a_campaign_that_two_sections_share_counts_once(study_folder: Path) -> None:
    assert len(json.loads((study_folder / "campaigns.json").read_text())) == 1
    assert len(json.loads((study_folder / "scorecard.json").read_text())) == 7


def test_a_section_about_a_part_shows_only_the_lines_figures_and_tables_of_this_part(campaign: Path) -> None:
    sections = [
        {"title": "The rest", "experiment": "tplink-buffer"},
        {"title": "The windows", "experiment": "tplink-buffer", "part": "window"},
    ]
    parsed = study(sections=sections)
    one = ReportedCampaign("tplink-buffer", *read_results(campaign), {}, list(parsed.sections))
    one = replace(one, document=compose(one.campaign, one.results))
    for kind, entries in (("figure", one.campaign.plan.figures), ("table", one.campaign.plan.tables)):
        for output, name in zip(one.document[f"{kind}s"], output_names(entries, kind), strict=True):
            output["name"] = name  # the name that the analysis gives the output
    rest, windows = compose_study(parsed, [(section, one) for section in parsed.sections], [one])["sections"]
    for shown, parts in ((windows, {"window"}), (rest, {"buffer", ""})):
        assert {line["part"] for line in shown["lines"]} <= parts
    assert len(rest["lines"]) + len(windows["lines"]) == len(one.results)
    assert [figure["name"] for figure in windows["figures"]] == [
        "throughput-by-rwnd-window",
        "rtt-by-rwnd-window",
    ]
    assert [table["name"] for table in rest["tables"]] == ["buffer-estimates-buffer"]
    assert windows["lines"] and not windows["tables"] and not rest["figures"]


def test_an_unknown_part_of_a_section_is_reported_with_the_nearest_name(
    campaign: Path, tmp_path: Path
) -> None:
    sections = [{"title": "The windows", "experiment": "tplink-buffer", "part": "windwo"}]
    with pytest.raises(ReportError, match=r"section 'The windows'.*unknown part 'windwo'; did you mean"):
        make_study(study(sections=sections), lambda _: campaign, tmp_path, silent)


def test_figures_and_data_are_in_folders_of_their_experiment_with_checksums(study_folder: Path) -> None:
    listed = [line.split("  ")[1] for line in (study_folder / "SHA256SUMS").read_text().splitlines()]
    assert any(name.startswith("figures/tplink-buffer/") for name in listed)
    done = subprocess.run(
        ["sha256sum", "-c", "SHA256SUMS"], cwd=study_folder, capture_output=True, check=False
    )
    assert done.returncode == 0


def test_two_campaigns_of_an_experiment_keep_their_own_figures_data_and_trials(
    campaign: Path, tmp_path: Path
) -> None:
    earlier = shutil.copytree(campaign, tmp_path / "tplink-buffer" / "earlier")
    later = shutil.copytree(campaign, tmp_path / "tplink-buffer" / "later")
    (earlier / "bundle" / "data" / "of-an-earlier-plan.csv").write_text("a\n1\n")
    file = later / "bundle" / "data" / "rtt-by-rwnd.csv"
    file.write_text(file.read_text().replace(",1,2\n", ",1,3\n"))
    sections = [
        {"title": f"The {one}", "experiment": "tplink-buffer", "campaign": one}
        for one in ("earlier", "later")
    ]
    make_study(study(sections=sections), tmp_path.joinpath, tmp_path / "study", silent)
    data = tmp_path / "study" / "data" / "tplink-buffer"
    texts = [(data / one / "rtt-by-rwnd.csv").read_text()[-4:] for one in ("earlier", "later")]
    assert texts == ["1,2\n", "1,3\n"]
    assert not [*data.rglob("of-an-earlier-plan.csv")]
    page = (tmp_path / "study" / "report.html").read_text()
    assert page.count("<td>Median RTT against rwnd</td>") == 2, "each file is listed with its own title"
    curves = [json.loads(one) for one in re.findall(r'class="curves">(.*?)</script>', page)]
    assert [one["panels"][0]["curves"][0]["at"] for one in curves] == [[0], [30]]


def test_values_that_differ_between_campaigns_on_one_testbed_are_shown_for_each_campaign(
    campaign: Path, tmp_path: Path
) -> None:
    folders = {name: shutil.copytree(campaign, tmp_path / "tplink-buffer" / name) for name in ("one", "two")}
    changes = {
        "provenance.json": [
            ("Linux 6.1.0-um", "Linux 6.18.44"),
            ('"uml"', '"native"'),
            ("249bb44", "7c0ffee"),
        ],
        "plan.json": [("40000000", "72000000")],
        "bundle/analysis.json": [('"trials_used": [', '"trials_used": ["another",')],
    }
    for name, texts in changes.items():
        file = folders["two"] / name
        changed = file.read_text()
        for before, after in texts:
            assert before in changed
            changed = changed.replace(before, after)
        file.write_text(changed)
    sections = [{"title": one, "experiment": "tplink-buffer", "campaign": one} for one in folders]
    parsed = study(sections=sections)
    reported = []
    for name, section in zip(folders, parsed.sections, strict=True):
        campaign_of, results = read_results(folders[name])
        reported.append(
            ReportedCampaign(name, campaign_of, results, compose(campaign_of, results), [section])
        )
    document = compose_study(parsed, [*zip(parsed.sections, reported, strict=True)], reported)
    (testbed,) = document["testbeds"]
    assert testbed["hosts"][0]["kernel"] == "Linux 6.1.0-um or Linux 6.18.44"
    assert "user-mode Linux or the machine’s own kernel" in testbed["testbed"]
    assert "rate 40 Mbit/s or 72 Mbit/s" in testbed["callout"]
    facts = {
        one["name"]: {fact["name"]: fact["value"] for fact in one["facts"]} for one in document["provenance"]
    }
    assert facts["Analysis"]["trials used"] == "28 (one); 29 (two)"
    assert facts["Lab"] == {"kernel": "uml (one); native (two)", "memory": "512MB"}
    assert re.fullmatch(r"249bb44\w+ \(one\); 7c0ffee\w+ \(two\)", facts["samovar"]["git revision"])


def test_the_same_campaigns_give_the_same_bytes(study_folder: Path, campaign: Path, tmp_path: Path) -> None:
    make_study(study(), lambda _: campaign, tmp_path, silent)
    assert (tmp_path / "SHA256SUMS").read_bytes() == (study_folder / "SHA256SUMS").read_bytes()


def test_an_unknown_figure_of_a_section_is_reported_with_the_nearest_name(
    campaign: Path, tmp_path: Path
) -> None:
    sections = [{"title": "The buffer", "experiment": "tplink-buffer", "figures": ["rtt-by-rwmd"]}]
    with pytest.raises(
        ReportError, match=r"section 'The buffer'.*unknown figure 'rtt-by-rwmd'; did you mean"
    ):
        make_study(study(sections=sections), lambda _: campaign, tmp_path, silent)


def test_every_error_of_a_study_is_reported_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "netgear.yaml"
    lines = [
        "study: other",
        "title: A title",
        "sections:",
        "  - {title: One, experiment: netgear-lam}",
        "  - {titel: Two, experiment: netgear-lan}",
    ]
    file.write_text("\n".join(lines))
    with pytest.raises(DefinitionError) as caught:
        load_study_report(file, {"netgear-lan", "netgear-txd"})
    message = str(caught.value)
    assert "netgear.yaml:5:6: unknown key 'titel'; did you mean 'title'?" in message
    assert "netgear.yaml:1:8: study 'other' is in the file netgear.yaml" in message


def test_an_unknown_experiment_is_reported_with_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "netgear.yaml"
    file.write_text("study: netgear\ntitle: A title\nsections:\n  - {title: One, experiment: netgear-lam}\n")
    with pytest.raises(
        DefinitionError,
        match=r"netgear.yaml:4:30: unknown experiment 'netgear-lam'; did you mean 'netgear-lan'",
    ):
        load_study_report(file, {"netgear-lan", "netgear-txd"})


@pytest.mark.parametrize(
    "path", sorted((ROOT / "experiments" / "studies").glob("*.yaml")), ids=lambda p: p.stem
)
def test_the_studies_of_this_project_are_valid(path: Path) -> None:
    experiments = {one.stem for one in (ROOT / "experiments").glob("*.yaml")}
    assert load_study_report(path, experiments).study == path.stem


def test_the_heading_of_a_section_is_on_the_same_page_as_its_text(tmp_path: Path) -> None:
    for template in TEMPLATES.glob("*.typ"):
        shutil.copy(template, tmp_path)
    for place in range(12):
        (tmp_path / "page.typ").write_text(
            '#import "style.typ": *\n#import "study-parts.typ": *\n'
            '#show: pages.with((experiment: "e", campaign: "c", samovar: "0"))\n'
            f"#v({21 + 0.3 * place}cm)\n"
            '#let one = (title: "Heading", follows: "part II", experiment: "e", text: "The text. " * 30, facts: (),'
            " tables: (), figures: (), lines: ())\n#study-section(one)\n"
        )
        pdf = tmp_path / "page.pdf"
        typst.compile(tmp_path / "page.typ", output=pdf, ignore_system_fonts=True)
        done = subprocess.run(["pdftotext", pdf, "-"], check=True, capture_output=True, timeout=60)
        with_heading = [page for page in done.stdout.decode().split("\f") if "Heading" in page]
        assert len(with_heading) == 1
        assert "The text." in with_heading[0]


def test_a_figure_that_is_higher_than_a_page_is_reduced(tmp_path: Path) -> None:
    for template in TEMPLATES.glob("*.typ"):
        shutil.copy(template, tmp_path)
    (tmp_path / "high.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="630" height="1700"/>')
    (tmp_path / "page.typ").write_text(
        '#import "style.typ": *\n#import "parts.typ": *\n'
        '#let one = (file: "high.svg", width_in: 6.3, title: "Title", caption: "A caption. " * 40, trials: "",'
        ' data: "", name: "high")\n#set page(width: page-width, height: page-height)\n'
        "#context [#metadata(measure(block(width: text-width, figure-block(one))).height.cm()) <height>]\n"
    )
    found = typst.query(tmp_path / "page.typ", "<height>", field="value", one=True, ignore_system_fonts=True)
    assert 15 < float(json.loads(found)) < 23.5
