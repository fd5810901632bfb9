"""Parts of the report: numbers, the drawing of the path, listings of scripts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from samovar.report.document import output_names
from samovar.report.number_format import listed, moment, number, quantity, span
from samovar.report.overview import shortened
from samovar.report.path_drawing import draw_path
from samovar.report.provenance import MOST_COLUMNS, MOST_LINES, one_line, read_script
from tests.unit.report.report_sample import THREE_HOSTS, dumbbell


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (39_412_345.6, "bps", "39.41 Mbit/s"),
        (34e6, "bit/s", "34 Mbit/s"),
        (0.005, "s", "5 ms"),
        (819_000, "bytes", "819 kB"),
        (0, "bytes", "0 B"),
        (0.02, "share", "2 %"),
        (546, "packets", "546 packets"),
        (11.3714, "×", "11.37 ×"),
        (0.991234, "", "0.9912"),
        (-12.5, "ms", "-12.5 ms"),
    ],
)
def test_a_quantity_has_few_digits_and_a_fitting_prefix(value: float, unit: str, words: str) -> None:
    assert quantity(value, unit) == words


def test_both_ends_of_a_range_have_the_same_number_of_decimals() -> None:
    assert span(39.412e6, 39.5e6, "bps") == "39.41–39.50 Mbit/s"
    assert span(546, 546.00001, "packets") == "546 packets"


def test_a_number_never_has_an_exponent() -> None:
    assert [number(value) for value in (1e15, 1e-7, 123456.7, float("nan"))] == [
        "1000000000000000",
        "0.0000001",
        "123457",
        "–",
    ]


def test_times_and_lists_are_formatted_as_words() -> None:
    assert moment(1795271645.0) == "21 November 2026, 14:34:05 UTC"
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_nested_provenance_is_formatted_as_one_line() -> None:
    assert (
        one_line({"tcpdump": "4.99.3", "ss": None, "flags": ["a", True]})
        == "tcpdump 4.99.3, ss, flags a, yes"
    )


def drawing_of(testbed: str) -> dict[str, Any]:
    return draw_path(yaml.safe_load(testbed))


def test_in_the_drawing_data_flow_from_left_to_right_through_the_router() -> None:
    path = drawing_of(THREE_HOSTS)
    assert {host["name"]: host["column"] for host in path["hosts"]} == {"src": 0, "rtr": 1, "dst": 2}
    assert [(link["name"], link["gap"], link["segment"]) for link in path["links"]] == [
        ("left", 0, False),
        ("right", 1, False),
    ]
    assert all(end["y"] == 0 for link in path["links"] for end in link["ends"])


def test_the_drawing_follows_the_direction_of_the_bottleneck_not_the_order_of_hosts() -> None:
    path = drawing_of(THREE_HOSTS.replace("from: eth1, to: eth2", "from: eth2, to: eth1"))
    assert {host["name"]: host["column"] for host in path["hosts"]} == {"src": 2, "rtr": 1, "dst": 0}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("pairs", [1, 2, 4, 7])
def test_senders_and_receivers_are_on_opposite_sides_and_do_not_overlap(pairs: int, shared: bool) -> None:
    path = drawing_of(dumbbell(pairs, shared))
    columns = {host["name"]: host["column"] for host in path["hosts"]}
    assert {columns[f"src{index}"] for index in range(1, pairs + 1)} == {0}
    assert {columns[f"dst{index}"] for index in range(1, pairs + 1)} == {2}
    spans = sorted(
        (host["column"], host["y"] - host["height"] / 2, host["y"] + host["height"] / 2)
        for host in path["hosts"]
    )
    for (column, _, bottom), (following, top, _) in pairwise(spans):
        assert column != following or bottom < top
    assert all(abs(edge) <= path["height"] / 2 for _, *edges in spans for edge in edges)


@pytest.mark.parametrize("pairs", [2, 4, 7])
def test_cables_to_one_router_do_not_cross(pairs: int) -> None:
    for gap in (0, 1):
        links = [link for link in drawing_of(dumbbell(pairs, shared=False))["links"] if link["gap"] == gap]
        for one in links:
            low, high = sorted(end["y"] for end in one["ends"])
            for other in (link for link in links if link is not one):
                for end in other["ends"]:
                    towards_end = end["side"] == "left"
                    reaches = one["joint"] > other["joint"] if towards_end else one["joint"] < other["joint"]
                    assert not (reaches and low < end["y"] < high), (one["name"], other["name"])


def test_every_line_of_the_drawing_ends_at_its_host() -> None:
    path = drawing_of(dumbbell(5, shared=False))
    hosts = {host["name"]: host for host in path["hosts"]}
    for end in (end for link in path["links"] for end in link["ends"]):
        host = hosts[end["host"]]
        assert abs(end["y"] - host["y"]) < host["height"] / 2


@pytest.mark.parametrize(
    "testbed",
    ["{}", "{hosts: {}}", "{hosts: {a: {role: sender}}}", "{hosts: {a: null, b: {interfaces: null}}}"],
)
def test_a_testbed_without_links_can_be_drawn(testbed: str) -> None:
    assert drawing_of(testbed)["links"] == []


def test_each_router_of_a_chain_has_a_column() -> None:
    path = drawing_of(
        "{hosts: {a: {interfaces: {e1: {link: l1}}}, r1: {interfaces: {e1: {link: l1}, e2: {link: l2}}},"
        " r2: {interfaces: {e1: {link: l2}, e2: {link: l3}}}, b: {interfaces: {e1: {link: l3}}}},"
        " bottleneck: {router: r2, from: e1, to: e2}}"
    )
    assert {host["name"]: host["column"] for host in path["hosts"]} == {"a": 0, "r1": 1, "r2": 2, "b": 3}


def listing(folder: Path, text: str) -> list[str]:
    file = folder / "000-src-set.sh"
    file.write_text(text)
    lines: list[str] = read_script(file)["lines"]
    return lines


def test_a_listing_is_wrapped_at_the_width_of_the_page_without_losing_characters(tmp_path: Path) -> None:
    text = "ethtool -K 'eth1' " + "tso off " * 40 + "y" * 250
    lines = listing(tmp_path, text)
    assert max(len(line) for line in lines) <= MOST_COLUMNS
    assert "".join(line.removeprefix("  ↳ ") for line in lines).replace(" ", "") == text.replace(" ", "")


def test_a_long_script_is_shortened_in_the_middle(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(500)]
    kept = listing(tmp_path, "\n".join(lines))
    assert (kept[0], kept[-1], len(kept)) == ("line 0", "line 499", MOST_LINES + 1)
    assert f"  … {500 - MOST_LINES} lines left out …" in kept
    assert listing(tmp_path, "\n".join(lines[:MOST_LINES])) == lines[:MOST_LINES]


@pytest.mark.parametrize(
    ("flows", "shown"),
    [(4, "1 2 3 4"), (5, "1 … (3 more like these) 5"), (12, "1 … (10 more like these) 12")],
)
def test_only_the_first_and_the_last_of_many_flows_of_a_group_are_shown(flows: int, shown: str) -> None:
    texts = [("bulk", str(number)) for number in range(1, flows + 1)]
    assert shortened([("voip", "a"), *texts, *texts]) == ["a", *shortened(texts)]
    assert " ".join(shortened(texts)) == shown


def test_outputs_whose_options_give_them_the_same_name_have_files_of_their_own() -> None:
    planned = [
        {"figure": "bars", "show": "goodput_bps", "by": "mtu", "overlay": "cc"},
        {"figure": "bars", "show": "goodput_bps", "by": "mtu", "facet": "cc"},
        {"figure": "bars-goodput-bps-mtu-cc-2"},
    ]
    assert output_names(planned, "figure") == [
        "bars-goodput-bps-mtu-cc",
        "bars-goodput-bps-mtu-cc-2",
        "bars-goodput-bps-mtu-cc-2-2",
    ]
