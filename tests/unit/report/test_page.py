"""The page of a campaign's report: the content of the PDF, without network, secrets or markup from experiments."""

from __future__ import annotations

import base64
import csv
import json
import random
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from samovar.events import silent
from samovar.report import make_bundle, write_index
from samovar.report.figure_curves import TableRow, encoded, read_curves
from tests.unit.report.page_text import Text, words_only_in_pdf
from tests.unit.report.report_sample import EXPERIMENT, NAME, Sample, draw_figures, write_campaign

HOSTILE = " <script>alert(1)</script></SCRIPT><!-- \"'&{{7*7}}{% raw %}\u202e\x07"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample campaign with its bundle, one figure of which has curves."""
    figures = draw_figures(tmp_path_factory.mktemp("figures"))
    folder = write_campaign(tmp_path_factory.mktemp("results"), figures=figures)
    (folder / "bundle" / "data" / "rtt-by-rwnd.csv").write_text(
        '"curve","rwnd","rwnd_bytes","median","mean","lo","hi","n"\n"newreno","50KB",50000,8.1,8,NA,NA,2\n'
        '"cdg","50KB",50000,7.9,8,7.5,8.5,5\n"cdg","200KB",2e+05,7.9,8,7.5,8.5,5\n'
    )
    make_bundle(folder, silent)
    return folder


def page_of(folder: Path) -> str:
    return (folder / "bundle" / "report.html").read_text()


def data_of(page: str, of: str) -> list[object]:
    found = re.findall(rf'<script type="application/json" {of}>(.*?)</script>', page)
    return [json.loads(one) for one in found]


def test_the_page_has_every_word_of_the_pdf(campaign: Path) -> None:
    in_drawing = {"direction", "linux", "right"}  # the path, whose drawing is a picture on the page
    bundle = campaign / "bundle"
    assert words_only_in_pdf(bundle / "tplink-buffer.pdf", bundle / "report.html") <= in_drawing | {
        "contents"
    }


def test_the_page_loads_nothing_and_links_only_to_files_beside_it(campaign: Path) -> None:
    page = Text(page_of(campaign))
    assert "link" in page.elements  # an empty icon, so that the browser requests none
    files = [one for one in page.links if not one.startswith(("data:", "#"))]
    assert files
    assert not [one for one in files if re.match(r"[a-z]+:|/", one)]
    assert all((campaign / "bundle" / one).is_file() for one in files)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page_of(campaign))
    assert policy
    assert policy[1].startswith("default-src 'none'; img-src data:")


def test_text_of_an_experiment_is_never_markup(tmp_path: Path, campaign: Path) -> None:
    sample = Sample(title="Title" + HOSTILE, description="About" + HOSTILE, hostile=HOSTILE)
    folder = write_campaign(tmp_path, sample, draw_figures(tmp_path / "figures"))
    curve = '"curve","rwnd_bytes","median"\n"cdg</script><script>alert(2)</script>",1,0\n'
    (folder / "bundle" / "data" / "rtt-by-rwnd.csv").write_text(curve)
    make_bundle(folder, silent)
    page, usual = Text(page_of(folder)), Text(page_of(campaign))
    assert page.elements.count("script") == usual.elements.count("script")
    text = " ".join(page.words)
    assert "Title <script>alert(1)</script></SCRIPT><!-- \"'&{{7*7}}{% raw %}‹U+202E›‹U+0007›" in text
    assert "alert(2)" in json.dumps(data_of(page_of(folder), 'class="curves"'))


def test_an_apparent_secret_in_a_check_is_not_on_the_page(tmp_path: Path, campaign: Path) -> None:
    folder = write_campaign(tmp_path, figures=draw_figures(tmp_path / "figures"))
    file = next((folder / "trials").glob("*/manifest.json"))
    manifest = json.loads(file.read_text())
    check = {
        "check": "started",
        "host": "src",
        "requested": "",
        "observed": "token=abcdef123456",
        "ok": False,
    }
    file.write_text(json.dumps({**manifest, "checks": [check]}))
    make_bundle(folder, silent)
    (text,) = re.findall(r'id="trial-details">(.*?)<', page_of(folder))
    details = zlib.decompress(base64.b64decode(text)).decode()
    assert "started" in details
    assert "abcdef123456" not in details + page_of(folder)


def test_a_campaign_without_figures_and_hosts_has_a_page(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path, Sample(experiment=EXPERIMENT.partition("expect:")[0]))
    (folder / "testbed.yaml").unlink()
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "figures": [], "tables": []}))
    for name in ("figures", "tables"):
        (folder / "bundle" / f"{name}.json").write_text("[]")
    for file in (folder / "bundle" / "data").iterdir():
        file.unlink()
    make_bundle(folder, silent)
    text = " ".join(Text(page_of(folder)).words)
    assert "The experiment states no expectations." in text
    assert "Figures" not in text


# --- Curves


TRIALS = {
    "a-r1": TableRow(0, ["main", "cubic", "1500", "replicate 1"]),
    "b-r1": TableRow(1, ["main", "cdg", "1500", "replicate 1"]),
}


STEP = {"kind": "step", "x": "value", "y": "share", "curve": "curve"}
MEDIANS = {"kind": "points", "x": "level", "y": "median", "low": "lo", "high": "hi", "curve": "curve"}


def curves_of(tmp_path: Path, text: str, layout: Mapping[str, object]) -> object:
    (tmp_path / "data.csv").write_text(text)
    return read_curves({"data": "data.csv", "ids": ["b-r1"], "layout": layout}, tmp_path, TRIALS)


def decode_column(column: dict[str, object]) -> list[float]:
    raw = base64.b64decode(str(column["floats"]))
    return [float(str(column["base"])) + one for (one,) in struct.iter_unpack("<f", raw)]


def test_a_time_series_has_a_panel_per_quantity_and_a_curve_per_trial(tmp_path: Path) -> None:
    chart = curves_of(
        tmp_path,
        "trial,flow,quantity,unit,t_s,low,mid,high\na-r1,bulk,rtt,ms,0,1,2,3\nb-r1,bulk,rtt,ms,2,5,6,7\n"
        "b-r1,bulk,rtt,ms,1,4,5,6\na-r1,queue,queue,packets,0,1,1,NA\n",
        {"kind": "line", "x": "t_s", "y": "mid", "low": "low", "high": "high", "curve": "flow"}
        | {"facets": ["quantity", "trial"]},
    )
    assert isinstance(chart, dict)
    assert [(one["title"], [c["label"] for c in one["curves"]]) for one in chart["panels"]] == [
        ("RTT (ms)", ["cubic", "cdg"]),
        ("Queue (packets)", ["cubic"]),
    ]
    cdg = chart["panels"][0]["curves"][1]
    assert (decode_column(cdg["x"]), decode_column(cdg["y"]), cdg["at"]) == ([1, 2], [5, 6], [1])


def test_each_value_of_a_distribution_keeps_its_trial(tmp_path: Path) -> None:
    text = "curve,value,trial,share\nx,10,b-r1,0.25\nx,20,gone,0.5\nx,30,a-r1,0.75\nx,40,a-r1,1\n"
    chart = curves_of(tmp_path, text, STEP)
    assert isinstance(chart, dict)
    (curve,) = chart["panels"][0]["curves"]
    assert (chart["kind"], chart["cumulative"], chart["trials"]) == ("step", True, [1])
    assert (decode_column(curve["x"]), decode_column(curve["y"])) == ([10, 20, 30, 40], [0.25, 0.5, 0.75, 1])
    assert curve["at"] == [1, -1, 0, 0]


def test_the_layout_of_a_figure_determines_its_curves_and_panels(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(
        "trial,column,curve,flow,t_s,y\na-r1,none,cubic,bulk,0,1\nb-r1,none,cdg,bulk,0,2\nb-r1,red,cdg,bulk,1,3\n"
    )
    layout = {"kind": "line", "x": "t_s", "y": "y", "curve": "curve", "facets": ["column"]}
    figure = {"data": "data.csv", "ids": [], "layout": layout}
    chart = read_curves(figure, tmp_path, TRIALS)
    assert chart is not None
    assert [(one["title"], [c["label"] for c in one["curves"]]) for one in chart["panels"]] == [
        ("none", ["cubic", "cdg"]),
        ("red", ["cdg"]),
    ]
    for changed in ({"kind": "violins"}, {"curve": "gone"}, {"facets": ["gone"]}):
        assert read_curves({**figure, "layout": {**layout, **changed}}, tmp_path, TRIALS) is None


def test_medians_by_levels_that_are_words_have_the_words_on_their_axis(tmp_path: Path) -> None:
    chart = curves_of(
        tmp_path, "label,curve,median,lo,hi,n,level\nnone,x,1,NA,NA,2,none\nred,x,2,1,3,5,red\n", MEDIANS
    )
    assert isinstance(chart, dict)
    assert (chart["kind"], chart["x"]["levels"]) == ("points", ["none", "red"])
    (curve,) = chart["panels"][0]["curves"]
    assert (decode_column(curve["x"]), curve["levels"]) == ([0, 1], ["none", "red"])


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        *((text, STEP) for text in ("", "a\n", "curve,value,share\n", "curve,value\nx,1\n")),
        *(("curve,value,share\nx,1,1\n", layout) for layout in ({}, {**STEP, "kind": "violins"}, MEDIANS)),
    ],
)
def test_data_without_the_columns_of_a_layout_have_no_curves(
    tmp_path: Path, text: str, layout: dict[str, object]
) -> None:
    assert curves_of(tmp_path, text, layout) is None


def test_numbers_are_encoded_with_an_error_of_at_most_a_16_millionth_of_their_range() -> None:
    draw = random.Random(1)
    for scale in (1e-6, 1.0, 1e12):
        values = [1e9 + scale * draw.random() for _ in range(1000)]
        span = max(values) - min(values)
        found = decode_column(encoded(values))
        assert max(abs(a - b) for a, b in zip(found, values, strict=True)) <= span / 16e6 + 1e9 * 2**-52


def test_a_figure_of_bars_has_levels_on_its_axis_even_if_the_levels_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(
        "curve,level,median,lo,hi\ncubic,1500,3,2,4\ncubic,600,1,NA,NA\ncdg,600,2,1,3\n"
    )
    layout = {"kind": "bars", "x": "level", "y": "median", "low": "lo", "high": "hi", "curve": "curve"}
    chart = read_curves({"data": "data.csv", "ids": [], "layout": layout}, tmp_path, TRIALS)
    assert chart is not None
    assert chart["x"]["levels"] == ["1500", "600"]
    assert [decode_column(curve["x"]) for curve in chart["panels"][0]["curves"]] == [[0, 1], [1]]


def test_tiles_of_a_heat_map_have_texts_intervals_and_shares_of_the_range_of_all_values(
    tmp_path: Path,
) -> None:
    (tmp_path / "data.csv").write_text(
        "mtu,row,column,median,lo,hi\n600,cubic,50KB,10,9.126,11\n600,cdg,50KB,NA,NA,NA\n1500,cubic,200KB,1230,NA,NA\n"
    )
    layout = {"kind": "tiles", "x": "column", "y": "row", "value": "median", "low": "lo", "high": "hi"}
    figure = {"data": "data.csv", "ids": ["a-r1"], "layout": {**layout, "facets": ["mtu"]}}
    chart = read_curves(figure, tmp_path, TRIALS)
    assert chart is not None
    assert (chart["x"]["levels"], chart["y"]["levels"], chart["trials"]) == (
        ["50KB", "200KB"],
        ["cubic", "cdg"],
        [0],
    )
    assert chart["panels"] == [
        {"title": "600", "rows": {"cubic": {"50KB": {"text": "10", "interval": "[9.13, 11]", "share": 0}}}},
        {"title": "1500", "rows": {"cubic": {"200KB": {"text": "1230", "interval": "", "share": 1}}}},
    ]
    del figure["layout"]["value"]  # type: ignore[attr-defined]
    assert read_curves(figure, tmp_path, TRIALS) is None


def test_a_figure_of_segments_has_a_panel_per_trial_and_a_curve_per_kind_of_segment(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(
        "trial,flow,event,t_s,low_kb,high_kb\na-r1,bulk,segment,0,0,1.5\na-r1,bulk,ACK,1,1.5,1.5\nb-r1,bulk,segment,0,0,1.5\n"
    )
    layout = {"kind": "segments", "x": "t_s", "low": "low_kb", "high": "high_kb", "curve": "event"}
    figure = {"data": "data.csv", "ids": [], "layout": {**layout, "facets": ["trial", "flow"]}}
    chart = read_curves(figure, tmp_path, TRIALS)
    assert chart is not None
    assert [(one["title"], [c["label"] for c in one["curves"]]) for one in chart["panels"]] == [
        ("a-r1 · bulk", ["segment", "ACK"]),
        ("b-r1 · bulk", ["segment"]),
    ]
    segment = chart["panels"][0]["curves"][0]
    assert (decode_column(segment["low"]), decode_column(segment["y"])) == ([0], [1.5])


# --- The index


def index_rows(results: Path) -> Iterator[list[str]]:
    page = (results / "index.html").read_text()
    for row in re.findall(r"<tr><td>.*?</tr>", page, re.DOTALL):
        yield [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]


def test_the_index_lists_each_readable_campaign_with_the_verdicts_of_its_trials_and_links(
    campaign: Path, tmp_path: Path
) -> None:
    results = campaign.parents[1]
    damaged = results / "broken" / "full-1"
    damaged.mkdir(parents=True)
    (damaged / "plan.json").write_text("{")
    study = results / "studies" / "two"
    study.mkdir(parents=True)
    (study / "two.pdf").write_bytes(b"%PDF")
    edited = results / "broken" / "full-2"
    (edited / "bundle").mkdir(parents=True)
    for name in ("plan.json", "journal.jsonl"):
        (edited / name).write_bytes((campaign / name).read_bytes())
    (edited / "bundle" / "scorecard.json").write_text("[1]")
    index, unread = write_index(results, [campaign, damaged, edited], [study])
    assert [one.split(":")[0] for one in unread] == [str(damaged), str(edited)]
    (row,) = index_rows(results)
    assert row[:2] == ["tplink-buffer", NAME]
    assert row[5] == "30: 28 valid, 1 suspect, 1 invalid"
    links = [one for one in Text(index.read_text()).links if not one.startswith("data:")]
    assert links == [
        f"tplink-buffer/{NAME}/",
        *(f"tplink-buffer/{NAME}/bundle/{one}" for one in ("report.html", "tplink-buffer.pdf")),
        "studies/two/two.pdf",
    ]
    assert all((results / one).exists() for one in links)


def test_the_curves_of_the_page_have_the_values_of_the_data_in_the_bundle(campaign: Path) -> None:
    with (campaign / "bundle" / "data" / "rtt-by-rwnd.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    (chart,) = data_of(page_of(campaign), 'class="curves"')
    assert isinstance(chart, dict)
    found = [pytest.approx(y) for curve in chart["panels"][0]["curves"] for y in decode_column(curve["y"])]
    assert found == [float(row["median"]) for row in rows]
