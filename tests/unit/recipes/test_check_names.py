"""Unknown names and syntax errors in a recipe are reported when the recipe is read, with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.errors import DefinitionError
from samovar.recipes.recipe import Recipe

ROOT = Path(__file__).parents[3]
HEAD = """\
{#---
summary: TTL of packets.
parameters:
  hops: {type: integer, unit: routers, default: "64", description: "TTL"}
---#}
"""
BLOCKS = {
    "read": 'echo "ttl=$(cat /x)"',
    "set": "put_in /x {{ hops }}",
    "wanted": "ttl={{ hops }}",
    "restore": "put_in /x {{ was.ttl }}",
}


def recipe(folder: Path, program: str = "", **blocks: str) -> Recipe:
    """Write a setting recipe in which `blocks` replace valid blocks, and a program that it may include."""
    path = folder / "linux" / "setting" / "ttl.sh.j2"
    path.parent.mkdir(parents=True)
    (folder / "linux" / "program").mkdir()
    (folder / "linux" / "program" / "own.sh").write_text(program)
    texts = {**BLOCKS, **blocks}.items()
    body = "".join(f"{{% block {name} %}}\n{text}\n{{% endblock %}}\n" for name, text in texts)
    path.write_text(HEAD + body)
    return Recipe("setting", "ttl", path, (folder,))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({"set": "put_in /x {{ hopps }}"}, "ttl.sh.j2:10:14: unknown name in block set 'hopps'; did you mean 'hops'? known: given, hops, interfaces, was"),
        ({"wanted": "ttl={{ was.ttl }}"}, "ttl.sh.j2:13:8: unknown name in block wanted 'was'; known: given, hops, interfaces"),
        ({"set": "{% for one in interfaces %}{{ one }}{% endfor %}{{ i }}"}, "unknown name in block set 'i'; "),
        ({"set": "{{ hops | tc_rat }}"}, "ttl.sh.j2:10:11: unknown filter 'tc_rat'; did you mean 'tc_rate'? known: "),
        ({"set": "{% if hops is devined %}{% endif %}"}, "ttl.sh.j2:10:15: unknown test 'devined'; did you mean 'defined'? known: "),
        ({"set": "{% if hops %}"}, "ttl.sh.j2:11:1: Encountered unknown tag 'endblock'."),
        ({"set": '{% include "linux/program/onw.sh" %}'}, "ttl.sh.j2:10:13: no file 'linux/program/onw.sh' below the folders of recipes"),
        ({"set": '{% include "linux/program/own.sh" %}', "program": "a\nb {{ hop }}"}, "own.sh:2:1: unknown name 'hop'; did you mean 'hops'? known: "),
        ({"set": '{% include "linux/program/own.sh" %}', "program": "n=${#text}"}, "own.sh:1:1: Missing end of comment tag"),
    ],
)  # fmt: skip
def test_an_error_in_a_recipe_is_reported_with_its_line(
    tmp_path: Path, blocks: dict[str, str], message: str
) -> None:
    with pytest.raises(DefinitionError) as error:
        _ = recipe(tmp_path, **blocks).blocks
    assert message in str(error.value)


def test_all_unknown_names_of_a_recipe_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError) as error:
        _ = recipe(tmp_path, set="{{ one }}", wanted="{{ two }}", restore="{{ three }}").blocks
    assert [problem.line for problem in error.value.problems] == [10, 13, 16]


@pytest.mark.parametrize(
    "text",
    [
        "{% for one in interfaces %}{{ one }}{{ loop.index }}{% endfor %}",
        "{% set two = hops + 1 %}{{ two }}{% for i in range(two) %}{{ i }}{% endfor %}",
        "{% macro twice(a) %}{{ a }}{{ a }}{% endmacro %}{{ twice(hops) }}",
        "{% if hops is defined and given %}{{ was.ttl }}{% endif %}",
        '{% set text %}x{% endset %}{% include "linux/program/own.sh" %}',
    ],
)
def test_names_that_jinja_or_the_recipe_defines_are_accepted(tmp_path: Path, text: str) -> None:
    assert "set" in recipe(tmp_path, program="echo {{ text }} {{ hops }}", set=text).blocks


def test_every_shipped_recipe_uses_known_names_only() -> None:
    templates = ROOT / "templates"
    files = [path for path in sorted(templates.glob("*/*/*.sh.j2")) if path.parts[-3] != "lab"]
    read = [
        Recipe(path.parent.name, path.name.partition(".")[0], path, (templates,)).blocks for path in files
    ]
    assert len(read) > 100
