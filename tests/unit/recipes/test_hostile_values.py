"""No text that a user writes can break out of a recipe: 10,000 hostile texts are values of all recipes.

First, no value is rendered inside quotes: text that would end the quotes is inserted without quoting, and dash still
parses the script. Second, a quoted value is one word, which dash prints unchanged. Third, dash runs all recipes with
hostile values, and executes nothing that the values contain.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from samovar.errors import RecipeError
from samovar.experiment.keys import ParameterInfo
from samovar.plan import MatchPlan
from samovar.recipes import Catalogue, PathDirection, Recipe, StopRule, SudoCommand, quote
from samovar.recipes.quoting import Raw
from samovar.recipes.recipe import NOT_SHELL
from samovar.recipes.recipe_filters import DelayStage

CATALOGUE = Catalogue(Path(__file__).parents[3] / "templates")
SYSTEMS = ("linux", "freebsd", "freebsd-11")
KINDS = ("setting", "generator", "logger", "step", "fact")
NUMBERS = {
    "size": 50_000,
    "rate": 100_000_000,
    "duration": 0.5,
    "packets": 100,
    "share": 0.01,
    "integer": 256,
    "number": 1.5,
    "switch": 1,
    "port": 5001,
}
FROM_OUTSIDE_DOUBLE, FROM_OUTSIDE_SINGLE = Raw("""'" && || "'"""), Raw('''"' && || '"''')
"""Each is one word outside of quotes, and a syntax error inside the kind of quotes in its name."""


class State(dict[str, object]):
    """A state of a host that has the same text under every key."""

    def __init__(self, text: str) -> None:
        super().__init__({text: text, f"offload.{text}.tso": "on"})
        self.text = text

    def __missing__(self, key: str) -> str:
        return self.text

    def __contains__(self, key: object) -> bool:
        return True

    def get(self, key: str, default: object = None) -> str:
        return self.text


def recipes() -> Iterator[Recipe]:
    seen = set()
    for system in SYSTEMS:
        for kind in KINDS:
            for name in sorted(CATALOGUE.names(kind, system)):
                recipe = CATALOGUE.recipe(kind, name, system)
                if recipe.path not in seen:
                    seen.add(recipe.path)
                    yield recipe


RECIPES = list(recipes())
SHELL_BLOCKS = [
    pytest.param(recipe, block, id=f"{recipe.path.parents[1].name}-{recipe.kind}-{recipe.name}-{block}")
    for recipe in RECIPES
    for block in sorted(recipe.blocks - NOT_SHELL)
]


def most_harmful_value(parameter: ParameterInfo, text: str) -> object:
    """Return the most harmful value that a parameter of this type accepts."""
    if parameter.choices:
        return parameter.choices[0]
    if parameter.type in NUMBERS:
        return NUMBERS[parameter.type]
    if parameter.type.startswith("list"):
        return (text,)
    return {text: text} if parameter.type == "names and values" else text


def values_of(recipe: Recipe, text: str) -> dict[str, object]:
    """Return the values of a recipe, with `text` in place of every text."""
    flow = {"name": text, "output": text, "addresses": (text,), "from_address": text, "to_address": text}
    counts = {
        "limit_s": 21.0,
        "port": 5001,
        "ports": (5001,),
        "duration_s": 6.0,
        "size_bytes": None,
        "dscp": 46,
        "interval_s": 0.1,
    }
    values: dict[str, object] = {
        **flow,
        **counts,
        "cc": text,
        "offered": text,
        "system": text,
        "interface": text,
        "was": State(text),
    }
    values |= {
        name: most_harmful_value(parameter, text) for name, parameter in recipe.header.parameters.items()
    }
    if recipe.name == "bottleneck":
        match = MatchPlan(from_subnet=text, to_subnet=text, from_port=1, port=2)
        stages = tuple(
            DelayStage(name, matches, 1000, 10_000, 0, 0.01, None, 0.01, 0.0)
            for name, matches in ((text, (match,)), (text, ()))
        )
        direction = {
            "arrives": text,
            "leaves": text,
            "stages": stages,
            "rate_bps": 1_000_000,
            "burst_bytes": 9000,
        }
        values["directions"] = tuple(
            PathDirection(name=name, queue=text, queue_shown=(text,), **direction)  # type: ignore[arg-type]
            for name in ("down", "up")
        )
        values["was"] = {"ipfw.rules": "0", text: text}
    if recipe.name == "watch":
        values["starts"] = [(1, [(text, f"echo {quote(text)}\n")])]
        values["rules"] = [StopRule(frozenset({text}), (text,))]
    if recipe.kind == "fact":
        values |= {"programs": [(text, text)], "qdiscs": [(text, text)]}
        values |= {
            "commands": [SudoCommand(text, text, text, (text, "other"), frozenset({text}))],
            "root_programs": [text],
        }
    return values


@pytest.mark.parametrize(("recipe", "block"), SHELL_BLOCKS)
@pytest.mark.parametrize("probe", [FROM_OUTSIDE_DOUBLE, FROM_OUTSIDE_SINGLE], ids=["double", "single"])
def test_no_value_is_rendered_inside_quotes(recipe: Recipe, block: str, probe: Raw) -> None:
    script = recipe.render(block, values_of(recipe, probe))
    done = subprocess.run(["dash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not [line for line in script.splitlines() if line.lstrip().startswith("#") and "&& ||" in line]


@pytest.mark.parametrize("context", ['echo "%s"', "echo '%s'", 'x="$(echo "%s")"', "sh -c 'echo %s'"])
def test_one_of_two_probe_texts_is_a_syntax_error_if_a_value_is_inside_quotes(context: str) -> None:
    codes = [
        subprocess.run(
            ["dash", "-n"], input=context % probe, text=True, capture_output=True, check=False
        ).returncode
        for probe in (FROM_OUTSIDE_DOUBLE, FROM_OUTSIDE_SINGLE)
    ]
    assert any(codes)


SPECIAL = [
    "'",
    '"',
    "`",
    "$",
    "\\",
    ";",
    "&",
    "|",
    "<",
    ">",
    "(",
    ")",
    "{",
    "}",
    "*",
    "?",
    "[",
    "]",
    "~",
    "#",
    "!",
    "=",
    "-",
]
PIECES = [
    *SPECIAL, " ", "\t", "\x01", "\x1b", "\x7f", "\u00e9", "\u2028", "--", "-rf", "$(:>pwned)", "`:>pwned`", ";:>pwned;", "'\n"[0],
    "${IFS}", "$PWD", "$((1/0))", ":>pwned", "%s%n", "{{ 7 }}", "../..", "/etc/passwd", "x=1", "EOF", "THE-END",
]  # fmt: skip


def hostile(count: int) -> list[str]:
    """Return `count` different texts of characters and words that are special in shells."""
    source = random.Random(20260101)
    made = {"": None}
    while len(made) < count:
        made["".join(source.choices(PIECES, k=source.randint(1, 8)))] = None
    return list(made)


HOSTILE = hostile(10_000)


def test_ten_thousand_hostile_texts_are_one_word_each() -> None:
    words = " ".join(quote(text) for text in HOSTILE)
    script = f"printf '%s\\0' {words}"
    done = subprocess.run(["dash"], input=script.encode(), capture_output=True, check=True)
    assert done.stdout == b"".join(text.encode() + b"\0" for text in HOSTILE)


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0b"])
def test_values_that_cannot_be_one_word_are_refused(text: str) -> None:
    with pytest.raises(RecipeError, match="cannot be a shell word"):
        quote(text)


HELPERS = """
cd {folder}
PATH={folder}/nothing
fail() {{ exit 1; }}
launch() {{ :; }}
launch_root() {{ :; }}
root() {{ "$@"; }}
can_put() {{ [ -w "$1" ]; }}
put_in() {{ echo "$2" >"$1"; }}
batch() {{ while read -r line; do set -- $line; done; }}
user=root
await() {{ :; }}
"""
"""PATH has no programs, so that only the shell itself can execute a part of a text."""


def test_ten_thousand_hostile_texts_in_every_recipe_run_nothing(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    blocks = [(recipe, block) for recipe in RECIPES for block in sorted(recipe.blocks - NOT_SHELL)]
    texts, scripts = iter(HOSTILE), []
    for number, text in enumerate(texts):
        recipe, block = blocks[number % len(blocks)]
        script = recipe.render(block, values_of(recipe, text)).replace("/boot/", f"{tmp_path}/boot/")
        scripts.append(f"(\n:\n{script}\n) </dev/null\necho done {number}\n")
    output = b""
    for start in range(0, len(scripts), 500):
        output += run_contained(
            HELPERS.format(folder=tmp_path) + "".join(scripts[start : start + 500]), tmp_path
        )
    ends = [line for line in output.splitlines() if line.startswith(b"done ")]
    assert len(ends) >= len(HOSTILE)
    assert sorted(path.name for path in tmp_path.rglob("pwned*")) == []


def run_contained(script: str, folder: Path) -> bytes:
    """Run shell text where it cannot change the machine's settings; fail for text that does not parse."""
    inside = 'for tree in /proc/sys /sys; do mount -o bind,ro "$tree" "$tree" || exit 99; done; exec dash'
    command = ["unshare", "--net", "--mount", "sh", "-c", inside]
    if os.geteuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    done = subprocess.run(
        command, input=script.encode(), capture_output=True, check=False, cwd=folder, timeout=60
    )
    assert b"yntax error" not in done.stderr, done.stderr[-500:]
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout
