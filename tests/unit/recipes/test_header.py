"""Errors in the header and the body of a recipe, each with its place and message."""

from pathlib import Path

import pytest

from samovar.errors import DefinitionError
from samovar.recipes import Recipe

BLOCKS = "".join(f"{{% block {name} %}}{{% endblock %}}\n" for name in ("read", "set", "wanted", "restore"))
TYPES = (
    "duration, integer, number, packets, rate, share, size, size or zero, switch, or a description of a text"
)
KEYS = "choices, default, description, least, type, unit"
ERRORS = {
    "no blank after a colon": ("summary:X.", ["2:1: the file is a text; it must be a mapping (key: value)"]),
    "no header": ("", ["1:1: a recipe starts with a header: a line '{#---', YAML, and a line '---#}'"]),
    "no summary": ("needs: [ip]", ["2:1: key 'summary' is missing; known keys: alternative_to, alternatives, change, client_needs, counts, delay_step, duration_step, interfaces_need, lacks, leaves, listens, modules, modules_note, needs, parameters, ports, records, root, root_lasting, root_login, server_needs, summary, tracepoints, transport"]),
    "open list": ("summary: [X.\nneeds: []", ["3:6: missing ',' or ']' before this; close the bracket that opens in line 2"]),
    "duplicate key": ("summary: X.\nsummary: Y.", ["3:1: duplicate key 'summary', first in line 2; keep one"]),
    "misspelt key": ("summary: X.\nneed: [ip]", ["3:1: unknown key 'need'; did you mean 'needs'? known: alternative_to, alternatives, change, client_needs, counts, delay_step, duration_step, interfaces_need, lacks, leaves, listens, modules, modules_note, needs, parameters, ports, records, root, root_lasting, root_login, server_needs, summary, tracepoints, transport"]),
    "text in place of a list": ("summary: X.\nneeds: ip", ["3:8: needs: must be a list, not 'ip'"]),
    "unknown change": ("summary: X.\nchange: rebot", ["3:9: change: unknown change 'rebot'; did you mean 'reboot'? known: interface-reset, none, reboot"]),
    "unknown feature of a path": ("summary: X.\nlacks: [jiter]", ["3:9: unknown key of a path 'jiter'; did you mean 'jitter'? known: duplicate, jitter, loss_burst, reorder"]),
    "unknown need of interfaces": ("summary: X.\ninterfaces_need: [rng]", ["3:19: unknown need of interfaces 'rng'; did you mean 'ring'? known: pause, ring"]),
    "step without a unit": ("summary: X.\nduration_step: 1", ["3:16: duration_step: '1' has no unit; expected a time such as 5ms"]),
    "port out of range": ("summary: X.\nports: [0, 99999]", ["3:12: offset 99999 is out of range; expected one from 0 to 65535"]),
    "unknown placeholder": ("summary: X.\nroot: [ip <iface>]", ["3:8: unknown <iface>; expected <interface>, <device>, <user>, <number> or <words>"]),
    "invalid pattern of root": ('summary: X.\nroot: ["ip [z-a]"]', ["3:8: 'ip [z-a]' is not a regular expression: bad character range z-a at position 1"]),
    "invalid pattern of a counter": ("summary: X.\ncounts: {sent: (}", ["3:16: sent: '(' is not a regular expression: missing ), unterminated subpattern at position 0"]),
    "pattern without a group": ("summary: X.\ncounts: {sent: x}", ["3:16: sent: the pattern must have one group in parentheses, around the number"]),
    "unit of zero bytes": ("summary: X.\ncounts: {sent: (.), unit_bytes: 0}", ["3:33: unit_bytes: whole number 0 is out of range; expected one from 1 up"]),
    "unknown type": ("summary: X.\nparameters:\n  a: {type: sice, description: b}", [f"4:13: type: unknown type 'sice'; did you mean 'size'? known: {TYPES}"]),
    "unknown key of a parameter": ("summary: X.\nparameters:\n  a: {typ: size, description: b}", [f"4:7: unknown key 'typ'; did you mean 'type'? known: {KEYS}"]),
    "no description": ("summary: X.\nparameters:\n  a: {type: size}", [f"4:6: key 'description' is missing; known keys: {KEYS}"]),
    "default without a unit": ("summary: X.\nparameters:\n  a: {type: size, description: b, default: 5}", ["4:44: default: '5' has no unit; expected a size such as 50KB"]),
    "default in YAML 1.1": ("summary: X.\nparameters:\n  a: {type: switch, description: b, default: yes}", ["4:46: default: 'yes' is not a switch; expected on or off"]),
    "default that is not a choice": ("summary: X.\nparameters:\n  a: {type: choice, description: b, choices: [c], default: d}", ["4:60: default: 'd' is not a choice here; expected one of c"]),
    "no choices": ("summary: X.\nparameters:\n  a: {type: choice, description: b}", ["4:6: parameter 'a' has no choices; expected choices: [one, another]"]),
    "several errors": ("summary: X.\nchange: yes\nlistens: both", ["3:9: change: unknown change 'yes'; known: interface-reset, none, reboot", "4:10: listens: unknown end 'both'; known: from, to"]),
}  # fmt: skip


def errors_of(folder: Path, text: str) -> list[str]:
    path = folder / "x.sh.j2"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DefinitionError) as caught:
        _ = Recipe("setting", "x", path).blocks
    return str(caught.value).replace(f"{path}:", "").splitlines()


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_a_header_is_reported_with_its_place_in_one_sentence(error: str, tmp_path: Path) -> None:
    header, messages = ERRORS[error]
    assert errors_of(tmp_path, f"{{#---\n{header}\n---#}}\n{BLOCKS}" if header else "echo\n") == messages


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (
            "{% block read %}{% endblock %}\n",
            ["1:1: a recipe of kind setting needs {% block restore %} and {% block set %} and {% block wanted %}; it has: read"],
        ),
        ("echo\n{{ a", ["5:1: unexpected end of template, expected 'end of print statement'"]),
    ],
    ids=["missing blocks", "unclosed expression"],
)  # fmt: skip
def test_an_error_in_a_body_is_reported_with_its_line(body: str, messages: list[str], tmp_path: Path) -> None:
    assert errors_of(tmp_path, f"{{#---\nsummary: X.\n---#}}\n{body}") == messages


def test_line_ends_of_windows_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    text = f"{{#---\nsummary: X.\n---#}}\n{BLOCKS}"
    (tmp_path / "x.sh.j2").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert Recipe("setting", "x", tmp_path / "x.sh.j2").header.summary == "X."


def test_a_recipe_that_is_not_text_is_refused_at_its_byte(tmp_path: Path) -> None:
    (tmp_path / "x.sh.j2").write_bytes(b"{#---\nsummary: \xff\n---#}\n")
    with pytest.raises(
        DefinitionError, match=r":2:10: a byte that is not valid UTF-8; save the file as UTF-8$"
    ):
        _ = Recipe("setting", "x", tmp_path / "x.sh.j2").blocks
