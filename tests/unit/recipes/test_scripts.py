"""Scripts rendered from recipes: quoted, complete, accepted by a POSIX shell, equal to the golden files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samovar.errors import RecipeError
from samovar.recipes import BLOCKS, BODY, Catalogue, Recipe, TrialScripts
from samovar.recipes.quoting import shell_environment
from samovar.recipes.recipe_filters import tc_rate, window_floor
from tests.unit.trials import TRIAL

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "linux"
CATALOGUE = Catalogue(ROOT / "templates")
SCRIPTS = TrialScripts(TRIAL, CATALOGUE, "full-20260101-000000")
T0_NS = 1_800_000_000 * 10**9
WAS = {
    "src": "cc=cubic",
    "rtr": "",
    "dst": "route.172.16.10.2=\ntcp_moderate_rcvbuf=1\ntcp_adv_win_scale=1\ntcp_rmem=4096 131072 6291456",
}
COMMON = (
    "mtu.eth1=1500\nmtu.eth2=1500\noffload.eth1.tso=on\noffload.eth2.gro=on\noffload.eth2.rx-gro-list=on\n"
    "tcp_ecn=2\ntcp_sack=1\ntcp_timestamps=1\ntcp_window_scaling=1\ntcp_no_metrics_save=0\n"
    "tcp_wmem.low=4096\ntcp_wmem.default=16384\ntcp_wmem.max=4194304\n"
    "tcp_rmem.low=4096\ntcp_rmem.default=131072\ntcp_rmem.max=6291456"
)


def _earlier_state(host: str) -> dict[str, str]:
    lines = f"{COMMON}\n{WAS[host]}".splitlines()
    return {key: value for key, _, value in (line.partition("=") for line in lines) if key}


def _scripts() -> dict[str, str]:
    """Render every script of the sample trial."""
    made: dict[str, str | None] = {}
    for host in ("src", "rtr", "dst"):
        made[f"{host}-wanted"] = "\n".join(SCRIPTS.wanted(host)) + "\n"
        made[f"{host}-restore"] = SCRIPTS.restore(host, _earlier_state(host))
        made[f"{host}-set"] = SCRIPTS.set(host, _earlier_state(host))
        for phase in ("read", "arm", "stop", "sweep"):
            made[f"{host}-{phase}"] = getattr(SCRIPTS, phase)(host)
        made[f"{host}-traffic"] = SCRIPTS.traffic(host, T0_NS)
    return {name: text for name, text in made.items() if text is not None}


def _golden() -> dict[str, str]:
    """Return the prelude that all scripts share, and each script without this prelude."""
    scripts = _scripts()
    shared, body, _ = scripts["src-read"].partition(BODY)
    own = {name: text.removeprefix(shared).removeprefix(body) for name, text in scripts.items()}
    return {"prelude": shared, **own}


@pytest.mark.parametrize("name", sorted(_golden()))
def test_a_rendered_script_is_equal_to_its_golden_file(name: str) -> None:
    path = GOLDEN / f"{name}.sh"
    text = _golden()[name]
    if os.environ.get("SAMOVAR_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", sorted(name for name in _scripts() if not name.endswith("-wanted")))
def test_a_rendered_script_passes_the_syntax_check_of_dash(name: str) -> None:
    done = subprocess.run(["dash", "-n"], input=_scripts()[name], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "templates").glob("*/*/*.sh.j2")), ids=lambda p: str(p.parent.name + "/" + p.name)
)
def test_every_recipe_file_has_a_valid_header(path: Path) -> None:
    kind = path.parent.name
    assert kind in BLOCKS
    recipe = Recipe(kind, path.name.removesuffix(".sh.j2"), path)
    assert recipe.header.summary.endswith(".")
    assert recipe.blocks >= BLOCKS[recipe.kind]


@settings(max_examples=300)
@given(st.text(st.characters(blacklist_characters="\0\r\n", codec="utf-8"), max_size=40))
def test_a_hostile_value_reaches_the_shell_as_one_word(value: str) -> None:
    script = shell_environment().from_string("printf '%s' {{ value }}").render(value=value)
    done = subprocess.run(["dash"], input=script.encode(), capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (value.encode(), b"")


def test_values_of_parameters_are_converted_and_unknown_parameters_are_refused() -> None:
    recipe = CATALOGUE.recipe("generator", "nuttcp", "linux")
    assert recipe.parse_values({"length": "64KB"}) == {"length": 64_000}
    with pytest.raises(
        RecipeError, match=r"nuttcp\.sh\.j2: unknown parameter 'lenght'; did you mean 'length'"
    ):
        recipe.parse_values({"lenght": "64KB"})


def test_a_missing_value_is_refused_with_the_recipe_s_name() -> None:
    with pytest.raises(RecipeError, match=r"mtu\.sh\.j2: block set: .*mtu_bytes"):
        CATALOGUE.recipe("setting", "mtu", "linux").render("set", {"interfaces": ("eth1",), "was": {}})


def test_an_unknown_recipe_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(
        RecipeError, match="unknown generator recipe for linux 'iperf33'; did you mean 'iperf3'"
    ):
        CATALOGUE.recipe("generator", "iperf33", "linux")


@pytest.mark.parametrize(
    ("size", "clamp"), [(50_000, 50_000), (65_535, 65_535), (200_000, 200_000), (9_999_000, 9_998_848)]
)
def test_a_window_is_rounded_down_to_its_scale(size: int, clamp: int) -> None:
    assert window_floor(size) == clamp
    assert size - clamp < 2 ** max(0, size.bit_length() - 16)


@pytest.mark.parametrize(
    ("rate", "text"),
    [(40_000_000, "40Mbit"), (1_500_000, "1500Kbit"), (843_300, "843296bit"), (2_000_000_000, "2Gbit")],
)
def test_a_rate_is_written_as_tc_prints_it(rate: int, text: str) -> None:
    assert tc_rate(rate) == text
