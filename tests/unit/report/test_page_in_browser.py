"""The page in headless Chromium: errors, keyboard and mouse, narrow screens, dark colours and printing."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from samovar.events import silent
from samovar.experiment.keys.experiment_file import StudyReport
from samovar.report import make_bundle, make_study
from tests.unit.report.browser import Browser, chromium
from tests.unit.report.report_sample import draw_figures, set_layout, write_campaign

SAMPLES, SPIKE = 100_000, 56_789
"""Number of samples of a long curve, many for each pixel, and the index of its one high value."""
LOADED = "(() => { const n = performance.getEntriesByType('navigation')[0]; return [n.loadEventEnd, n.transferSize] })()"
FIGURE = "document.getElementById('figure-rtt-by-rwnd')"
PLOT = f"{FIGURE}.querySelector('.plot')"
OPEN = "document.getElementById('trial-dialog').open"
LEGEND = "[...document.querySelectorAll('#figure-rtt-by-rwnd .legend button')]"
AXIS = f"(() => {{ const p = {PLOT}.querySelector('.u-over').getBoundingClientRect(); return [p.x, p.y, p.width, p.height] }})()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample campaign with a figure of medians, a figure of two trials over time, and a failed check."""
    figures = draw_figures(tmp_path_factory.mktemp("figures"))
    folder = write_campaign(tmp_path_factory.mktemp("results"), figures=figures)
    data = folder / "bundle" / "data"
    (data / "throughput-by-rwnd.csv").write_text(
        "curve,rwnd,rwnd_bytes,median,lo,hi\ncdg,50KB,50000,7.9,7.5,8.5\ncdg,600KB,600000,9,8,10\ncubic,50KB,50000,8,NA,NA\n"
    )
    trials = [path.parent for path in sorted((folder / "trials").glob("window-c*-50KB-*r1*/manifest.json"))]
    rows = [
        f"{trial.name},bulk,{quantity},{unit},{t_s / 10},{y},{y + 1},{y + 2}\n"
        for number, trial in enumerate(trials)
        for quantity, unit in (("rtt", "ms"), ("cwnd", "packets"))
        for t_s in range(1000)
        for y in [20 + 10 * number + 5 * math.sin(t_s / 50)]
    ]
    (data / "rtt-by-rwnd.csv").write_text("trial,flow,quantity,unit,t_s,low,mid,high\n" + "".join(rows))
    over_time = {"kind": "line", "x": "t_s", "y": "mid", "low": "low", "high": "high"}
    set_layout(folder, "rtt-by-rwnd", **over_time, facets=["quantity", "trial"])
    manifest = json.loads((trials[0] / "manifest.json").read_text())
    checks = [
        {
            "check": name,
            "host": "src",
            "requested": "1",
            "observed": seen,
            "ok": seen == "1",
            "severity": "suspect",
        }
        for name, seen in (("capture complete", "1"), ("start of flow", "late"))
    ]
    (trials[0] / "manifest.json").write_text(json.dumps({**manifest, "checks": checks}))
    make_bundle(folder, silent)
    return folder


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(tab: Browser, folder: Path) -> Iterator[Browser]:
    """The page, opened anew at 1280 pixels; a test fails if the page reports an error or requests another file."""
    page = folder / "bundle" / "report.html"
    tab.show_as(1280)
    tab.problems.clear()
    tab.requests.clear()
    tab.open(page)
    yield tab
    assert tab.problems == []
    assert tab.requests == [page.as_uri()]


def scroll_to_figure(browser: Browser) -> None:
    browser.run("document.getElementById('figure-rtt-by-rwnd').scrollIntoView()")
    browser.wait_for(PLOT)
    browser.run(f"{PLOT}.scrollIntoView({{block: 'center'}})")
    browser.settle()


def drag(browser: Browser, start: float, end: float) -> None:
    """Drag the mouse over the first panel, from one share of its width to another."""
    x, y, width, height = browser.run(AXIS)
    browser.mouse("mouseMoved", x + start * width, y + height / 2)
    browser.mouse("mousePressed", x + start * width, y + height / 2)
    for share in (0.3, 0.6, 1.0):
        browser.mouse("mouseMoved", x + (start + share * (end - start)) * width, y + height / 2)
    browser.mouse("mouseReleased", x + end * width, y + height / 2)


def value_at(browser: Browser, share: float, figure: str = "rtt-by-rwnd") -> float:
    """Return the x value that the page shows for the mouse at a share of the width of a figure's first panel."""
    x, y, width, height = browser.run(AXIS.replace("rtt-by-rwnd", figure))
    browser.mouse("mouseMoved", x + share * width, y + height / 2)
    text = browser.run(f"document.querySelector('#figure-{figure} .legend > output').textContent")
    return float(str(text).removeprefix("at "))


def test_the_page_opens_and_draws_every_figure(browser: Browser) -> None:
    loaded_ms, size = browser.run(LOADED)
    print(f"loaded in {loaded_ms:.0f} ms, {size / 1e6:.2f} MB", file=sys.stderr)
    scroll_to_figure(browser)
    assert browser.run("document.querySelectorAll('.with-curves').length") == 2
    assert browser.run("document.querySelectorAll('canvas').length") == 3


def test_dragging_in_a_figure_zooms_and_the_escape_key_shows_the_whole_figure_again(browser: Browser) -> None:
    scroll_to_figure(browser)
    drag(browser, 0.25, 0.5)
    assert value_at(browser, 0.0) == pytest.approx(25, abs=0.5)
    assert value_at(browser, 0.999) == pytest.approx(50, abs=0.5)
    browser.run(f"{PLOT}.focus()")
    browser.press("ArrowRight", shift=True)
    assert value_at(browser, 0.0) == pytest.approx(30, abs=0.5)
    browser.press("Escape")
    assert value_at(browser, 0.999) == pytest.approx(99.9, abs=0.5)


def test_a_logarithmic_axis_ends_at_the_data(browser: Browser) -> None:
    scroll_to_figure(browser)
    figure = "throughput-by-rwnd"
    assert value_at(browser, 0.5, figure) == pytest.approx(325_000, rel=0.02)
    browser.run(
        f"[...document.querySelectorAll('#figure-{figure} button')].find(one => one.textContent === 'Log x').click()"
    )
    browser.settle()
    assert value_at(browser, 0.5, figure) == pytest.approx(math.sqrt(50_000 * 600_000), rel=0.02)
    assert 600_000 < value_at(browser, 0.999, figure) < 800_000


def test_the_legend_shows_the_values_of_all_panels_at_one_time(browser: Browser) -> None:
    scroll_to_figure(browser)
    at_s = value_at(browser, 0.5)
    texts = browser.run(f"{LEGEND}.map(one => one.textContent)")
    expected = [20 + 10 * number + 5 * math.sin(at_s / 5) for number in (0, 1)] * 2
    found = [float(text.split("[")[1].split(",")[0]) for text in texts]
    assert found == pytest.approx(expected, abs=0.2)


def test_a_click_in_the_legend_hides_a_curve_in_every_panel(browser: Browser) -> None:
    scroll_to_figure(browser)
    browser.run(f"{LEGEND}[0].click()")
    browser.settle()
    pressed = browser.run(f"{LEGEND}.map(one => one.getAttribute('aria-pressed'))")
    assert pressed == ["false", "true", "false", "true"]


def test_a_click_on_a_point_opens_its_trial_with_checks_and_files(browser: Browser, folder: Path) -> None:
    scroll_to_figure(browser)
    x, y, width, height = browser.run(AXIS)
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        browser.mouse(kind, x + width / 2, y + height * 0.55)
    browser.wait_for(OPEN)
    heading = browser.run("document.getElementById('trial-heading').textContent")
    assert heading == next((folder / "trials").glob("window-cdg-50KB-*r1*")).name
    text = browser.run("document.getElementById('trial-dialog').innerText")
    assert "start of flow" in text
    assert "late" in text
    links = browser.run("[...document.querySelectorAll('#trial-dialog a')].map(one => decodeURI(one.href))")
    assert any(one.endswith("001-src-set.sh") for one in links)
    assert all(Path(one.removeprefix("file://")).is_file() for one in links)
    assert "1 passed" in text
    scripts = browser.run("[...document.querySelectorAll('#trial-dialog pre')].map(one => one.textContent)")
    assert "sysctl -w net.ipv4.tcp_congestion_control='reno'" in scripts[0]


def test_the_page_of_a_study_opens_the_trial_of_a_point_in_its_campaign(
    tab: Browser, folder: Path, tmp_path: Path
) -> None:
    sections = [{"title": "The buffer", "experiment": "tplink-buffer"}]
    study = StudyReport.model_validate({"study": "one", "title": "One campaign", "sections": sections})
    make_study(study, lambda _: folder, tmp_path, silent)
    tab.show_as(1280)
    tab.problems.clear()
    tab.open(tmp_path / "report.html")
    plot = "document.querySelector('#figure-tplink-buffer-rtt-by-rwnd .plot')"
    tab.run("document.getElementById('figure-tplink-buffer-rtt-by-rwnd').scrollIntoView()")
    tab.wait_for(plot)
    tab.run(f"{plot}.focus()")
    tab.press("ArrowRight")
    tab.press("Enter")
    tab.wait_for(OPEN)
    links = tab.run("[...document.querySelectorAll('#trial-dialog a')].map(one => decodeURI(one.href))")
    assert any(one.startswith((folder / "trials").as_uri()) for one in links)
    assert all(Path(one.removeprefix("file://")).is_file() for one in links)
    assert tab.problems == []


def test_the_enter_key_on_a_median_lists_the_trials_of_the_median(browser: Browser) -> None:
    scroll_to_figure(browser)
    browser.run("document.querySelector('#figure-throughput-by-rwnd .plot').focus()")
    browser.press("ArrowLeft")
    for _ in range(46):
        browser.press("ArrowLeft")
    browser.press("Enter")
    browser.wait_for(OPEN)
    shown = browser.run("[...document.querySelectorAll('#trial-dialog li')].map(one => one.textContent)")
    assert [one.rsplit("-", 2)[0] for one in shown] in (
        ["window-cdg-50KB-1500"] * 2,
        ["window-cubic-50KB-1500"] * 2,
    )


def test_the_details_of_a_trial_open_and_close_by_keyboard_with_a_visible_focus(browser: Browser) -> None:
    browser.run("document.querySelector('form input').focus()")
    for _ in range(10):
        browser.press("Tab")
        if browser.run("document.activeElement.matches('a[data-trial]')"):
            break
    trial = browser.run("document.activeElement.textContent")
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    browser.wait_for(OPEN)
    assert browser.run("document.getElementById('trial-heading').textContent") == trial
    assert browser.run("document.activeElement.textContent") == "Close"
    browser.press("Escape")
    assert browser.run(
        "[document.getElementById('trial-dialog').open, document.activeElement.textContent]"
    ) == [False, trial]


def test_the_table_of_trials_can_be_filtered_by_factor_and_verdict(browser: Browser) -> None:
    choose = """(name, value) => { const select = [...document.querySelectorAll('#filter label')].find(one => one.textContent.startsWith(name))
      .querySelector('select'); select.value = value; select.dispatchEvent(new Event('input', {bubbles: true})) }"""
    shown = "[...document.querySelectorAll('#trial-table tbody tr')].filter(row => !row.hidden).length"
    assert browser.run(shown) == 30
    browser.run(f"({choose})('cc', 'cdg')")
    assert browser.run(shown) == 8
    browser.run(f"({choose})('verdict', 'invalid')")
    assert browser.run(f"[{shown}, document.querySelector('#filter output').textContent]") == [
        0,
        "0 of 30 trials",
    ]


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_but_tables_is_wider_than_the_window(browser: Browser, width: int) -> None:
    browser.show_as(width)
    scroll_to_figure(browser)
    assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.run(f"{PLOT}.querySelector('canvas').clientWidth") <= width


def test_the_page_is_dark_if_the_browser_prefers_dark_colours(browser: Browser) -> None:
    colours = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    light = browser.run(colours)
    browser.show_as(1280, scheme="dark")
    assert browser.run(colours) != light
    assert [sum(map(int, one[4:-1].split(","))) > 384 for one in (*light, *browser.run(colours))] == [
        True,
        False,
        False,
        True,
    ]


def test_the_printed_page_has_the_pictures_and_no_buttons(browser: Browser, tmp_path: Path) -> None:
    scroll_to_figure(browser)
    (tmp_path / "page.pdf").write_bytes(browser.pdf())
    done = subprocess.run(
        ["pdftotext", tmp_path / "page.pdf", "-"], capture_output=True, text=True, check=True
    )
    assert "Figure 3" in done.stdout
    assert "Whole figure" not in done.stdout
    browser.show_as(1280, media="print")
    widths = browser.run(
        "[...document.querySelectorAll('img.picture')].map(one => one.naturalWidth * one.clientWidth)"
    )
    assert len(widths) == 3
    assert min(widths) > 0


def test_a_curve_with_many_samples_per_pixel_loses_no_extreme(
    tab: Browser, tmp_path: Path, folder: Path
) -> None:
    campaign = write_campaign(tmp_path, figures=folder / "bundle" / "figures")
    with (campaign / "bundle" / "data" / "rtt-by-rwnd.csv").open("w") as file:
        file.write("flow,quantity,unit,t_s,value\n")
        for place in range(SAMPLES):
            file.write(f"bulk,rtt,ms,{place / 1e3},{1000 if place == SPIKE else place % 7}\n")
    set_layout(campaign, "rtt-by-rwnd", kind="line", x="t_s", y="value", facets=["quantity"])
    make_bundle(campaign, silent)
    tab.show_as(1280)
    tab.problems.clear()
    tab.open(campaign / "bundle" / "report.html")
    loaded_ms, size = tab.run(LOADED)
    scroll_to_figure(tab)
    find = """(() => { const canvas = PLOT.querySelector('canvas'), over = PLOT.querySelector('.u-over').getBoundingClientRect(),
      box = canvas.getBoundingClientRect(), top = Math.round(over.top - box.top), left = Math.round(over.left - box.left);
      const { data, width } = canvas.getContext('2d').getImageData(left, top + Math.round(over.height / 4), Math.round(over.width), 1);
      const found = []; for (let x = 0; x < width; x++) if (data[4 * x + 2] > data[4 * x] + 60) found.push(x / width);
      return found })()""".replace("PLOT", PLOT)
    found = tab.run(find)
    assert found
    assert found == pytest.approx([SPIKE / SAMPLES] * len(found), abs=0.003)
    redraw_ms = tab.run(
        "(() => { const from = performance.now(); "
        + PLOT
        + ".dispatchEvent(new KeyboardEvent('keydown', {key: '+'}));"
        " return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - from)))) })()"
    )
    print(
        f"{SAMPLES} samples: loaded in {loaded_ms:.0f} ms, {size / 1e6:.1f} MB, zoomed in {redraw_ms:.0f} ms",
        file=sys.stderr,
    )
    assert tab.problems == []


# --- Kinds of figures other than curves


SAMPLES_OF = {"cdg": [1, 2, 3, 4, 30], "cubic": [5, 7, 8, 9, 12, 13]}
"""Samples of box plots, of which only 30 is beyond the whiskers."""


@pytest.fixture(scope="module")
def kinds(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a campaign with bars, boxes, tiles, a trade-off and segments."""
    campaign = write_campaign(tmp_path_factory.mktemp("kinds"), figures=folder / "bundle" / "figures")
    bundle = campaign / "bundle"
    ids = {cc: next((campaign / "trials").glob(f"window-{cc}-50KB-*r1*")).name for cc in SAMPLES_OF}
    over_levels = {"x": "level", "y": "median", "low": "lo", "high": "hi", "curve": "curve"}
    tiles: dict[str, object] = {
        "kind": "tiles",
        "x": "column",
        "y": "row",
        "value": "median",
        "low": "lo",
        "high": "hi",
    }
    xy = {"x": "x", "y": "y", "curve": "curve"}
    sequence = {"x": "t_s", "low": "low_kb", "high": "high_kb", "curve": "event", "facets": ["trial"]}
    points = "".join(f"cdg,{ids['cdg']},{x},{y}\n" for x, y in ((10, 5), (12, 6), (20, 7)))
    samples = "".join(f"{cc},{ids[cc]},{one}\n" for cc, values in SAMPLES_OF.items() for one in values)
    drawn: dict[str, tuple[dict[str, object], str]] = {
        "bars": (
            {"kind": "bars", **over_levels},
            "curve,level,median,lo,hi\ncdg,a,3,2,4\ncubic,a,5,NA,NA\ncubic,b,6,5,7\n",
        ),
        "panels": (
            {"kind": "bars", **over_levels, "facets": ["panel"]},
            "panel,curve,level,median,lo,hi\nhigh,cdg,a,10,NA,NA\nlow,cdg,a,5,NA,NA\n",
        ),
        "boxes": (
            {"kind": "boxes", "x": "curve", "y": "value", "curve": "curve"},
            f"curve,trial,value\n{samples}",
        ),
        "tiles": (tiles, "row,column,median,lo,hi\ncdg,50KB,1,NA,NA\ncubic,50KB,2,1,3\n"),
        "tradeoff": (
            {"kind": "points", **xy, "reversed": "x", "ellipses": True},
            f"curve,trial,x,y\n{points}",
        ),
        "segments": (
            {"kind": "segments", **sequence},
            f"trial,event,t_s,low_kb,high_kb\n{ids['cdg']},segment,0,0,50\n"
            f"{ids['cdg']},segment,1,50,100\n{ids['cdg']},window,0,9000,9000\n{ids['cdg']},window,1,9000,9000\n",
        ),
    }
    (entry, *_) = json.loads((bundle / "figures.json").read_text())
    for name, (_, text) in drawn.items():
        (bundle / "data" / f"{name}.csv").write_text(text)
        (bundle / "figures" / f"{name}.pdf").write_bytes((bundle / entry["file"]).read_bytes())
    every = [
        {
            **entry,
            "name": name,
            "file": f"figures/{name}.pdf",
            "data": f"data/{name}.csv",
            "layout": layout,
            "axes": {},
            "trials": list(ids.values()),
        }
        for name, (layout, _) in drawn.items()
    ]
    planned = json.loads((bundle / "figures.json").read_text())
    (bundle / "figures.json").write_text(json.dumps([*every, *planned]))
    make_bundle(campaign, silent)
    return bundle / "report.html"


@pytest.fixture
def other_kinds(tab: Browser, kinds: Path) -> Iterator[Browser]:
    tab.show_as(1280)
    tab.problems.clear()
    tab.open(kinds)
    yield tab
    assert tab.problems == []


def show(browser: Browser, figure: str) -> None:
    """Scroll to a figure, and wait until it is drawn."""
    browser.run(f"document.getElementById('figure-{figure}').scrollIntoView()")
    browser.wait_for(f"document.querySelector('#figure-{figure} .plot, #figure-{figure} table')")
    browser.settle()


def outputs_of(browser: Browser, figure: str) -> list[str]:
    """Return the text that the legend of a figure shows for each curve."""
    outputs = f"[...document.querySelectorAll('#figure-{figure} .legend button output')]"
    return list(browser.run(f"{outputs}.map(one => one.textContent)"))


def move_to(browser: Browser, figure: str, across: float, down: float, click: bool = False) -> None:
    """Move the mouse to a place of a figure's first panel, given as shares of its width and height."""
    show(browser, figure)
    browser.run(f"document.querySelector('#figure-{figure} .plot').scrollIntoView({{block: 'center'}})")
    x, y, width, height = browser.run(AXIS.replace("rtt-by-rwnd", figure))
    for kind in ("mouseMoved", *(("mousePressed", "mouseReleased") if click else ())):
        browser.mouse(kind, x + across * width, y + down * height)


def test_the_legend_of_bars_shows_the_values_at_a_level_and_nothing_for_a_curve_without_this_level(
    other_kinds: Browser,
) -> None:
    move_to(other_kinds, "bars", 0.25, 0.5)
    assert outputs_of(other_kinds, "bars") == ["3 [2, 4]", "5"]
    move_to(other_kinds, "bars", 0.75, 0.5)
    assert outputs_of(other_kinds, "bars") == ["", "6 [5, 7]"]


def test_a_box_has_the_quartiles_and_whiskers_of_r_and_opens_the_trial_of_a_sample(
    other_kinds: Browser,
) -> None:
    move_to(other_kinds, "boxes", 0.25, 0.5)
    assert outputs_of(other_kinds, "boxes") == [
        "median 3, quartiles 2 and 4, whiskers 1 to 4",
        "median 8.5, quartiles 7.25 and 11.25, whiskers 5 to 13",
    ]
    move_to(other_kinds, "boxes", 0.25, 0.06, click=True)
    other_kinds.wait_for(OPEN)
    assert str(other_kinds.run("document.getElementById('trial-heading').textContent")).startswith(
        "window-cdg-50KB"
    )


def test_a_click_on_a_tile_of_a_heat_map_opens_the_trials_of_its_row_and_column(other_kinds: Browser) -> None:
    show(other_kinds, "tiles")
    assert other_kinds.run(
        "[...document.querySelectorAll('#figure-tiles td')].map(one => one.textContent)"
    ) == [
        "1",
        "2[1, 3]",
    ]
    other_kinds.run("document.querySelectorAll('#figure-tiles td button')[1].click()")
    other_kinds.wait_for(OPEN)
    assert str(other_kinds.run("document.getElementById('trial-heading').textContent")).startswith(
        "window-cubic-50KB"
    )


def test_the_axis_of_delay_of_a_trade_off_is_reversed_before_and_after_panning(other_kinds: Browser) -> None:
    show(other_kinds, "tradeoff")
    left, right = value_at(other_kinds, 0.0, "tradeoff"), value_at(other_kinds, 0.999, "tradeoff")
    assert left > 20 > 10 > right
    other_kinds.run("document.querySelector('#figure-tradeoff .plot').focus()")
    other_kinds.press("ArrowRight", shift=True)
    assert value_at(other_kinds, 0.0, "tradeoff") == pytest.approx(left - 0.2 * (left - right), abs=0.1)


def blue_share(browser: Browser, figure: str, panel: int = 0, across: float = 0.0) -> float:
    """Return the share of blue pixels in a column of pixels of a panel."""
    show(browser, figure)
    return float(
        browser.run(
            f"""(() => {{ const canvas = document.querySelectorAll('#figure-{figure} canvas')[{panel}], box = canvas.getBoundingClientRect(),
      over = document.querySelectorAll('#figure-{figure} .u-over')[{panel}].getBoundingClientRect();
      const {{ data, height }} = canvas.getContext('2d').getImageData(over.left - box.left + {across} * over.width, over.top - box.top, 1, over.height);
      let blue = 0; for (let y = 0; y < height; y++) blue += data[4 * y + 2] > data[4 * y] + 60; return blue / height }})()"""
        )
    )


def test_the_axis_of_sequence_numbers_is_scaled_to_the_segments_not_to_the_window(
    other_kinds: Browser,
) -> None:
    half = pytest.approx(0.5 / 1.06, abs=0.05)
    assert blue_share(other_kinds, "segments") == half, (
        "the first segment has half of the height of both segments"
    )


def test_panels_of_one_quantity_have_the_same_axis(other_kinds: Browser) -> None:
    assert blue_share(other_kinds, "panels", 0, across=0.5) == pytest.approx(1 / 1.06, abs=0.05)
    assert blue_share(other_kinds, "panels", 1, across=0.5) == pytest.approx(0.5 / 1.06, abs=0.05)
