"""Errors in config.yaml and in studies are reported at their place, with the expected messages."""

from pathlib import Path

import pytest

from samovar.errors import DefinitionError
from samovar.experiment import load_config, load_study_report

KEYS = "backoff, backoff_most, calibrate, clock_tolerance, free_space, host_wait, lab, notify, os, quarantine, results, retries, settings, ssh, step_timeout, testbed, verdict"
CONFIG = {
    "unknown key": ("resuls: here\n", [f"1:1: unknown key 'resuls'; did you mean 'results'? known: {KEYS}"]),
    "no unit": ("ssh: {connect_timeout: 5}\n", ["1:24: connect_timeout: '5' has no unit; expected a time such as 5ms"]),
    "text instead of a mapping": ("ssh: 5s\n", ["1:6: ssh: must be a mapping with the keys connect_timeout, keepalive, not '5s'"]),
    "empty section": ("verdict:\n", ["1:9: verdict: must be a mapping with the keys bottleneck, bytes, capture_packets, clock_drift, clock_step, competing, competing_least, cpu, disk, duration, gap, late, offered, profile, rate, stall, window, not an empty value"]),
    "unknown operating systems": ("os: {linx: {settings: {mtu: 1500}}, freebsd: 3}\n", ["1:6: linx: unknown os 'linx'; did you mean 'linux'? known: freebsd, linux", "1:46: freebsd: must be a mapping with the keys settings, not '3'"]),
    "unknown operating system with a number instead of settings": ("os: {linx: 3}\n", ["1:6: linx: unknown os 'linx'; did you mean 'linux'? known: freebsd, linux"]),
    "unknown choice": ("calibrate: no\n", ["1:12: calibrate: unknown calibrate 'no'; known: auto, off, on"]),
    "fraction instead of a whole number": ("retries: 1.5\n", ["1:10: retries: '1.5' is not a whole number; expected digits only, from 0 up"]),
    "number out of range": ("quarantine: 0\n", ["1:13: quarantine: whole number 0 is out of range; expected one from 1 up"]),
    "name with a space": ("testbed: my lab\n", ["1:10: testbed: 'my lab' is not a name; expected at most 63 letters, digits, '.', '_' and '-', the first a letter or digit, such as bulk"]),
    "list instead of one value": ("results: [a, b]\n", ["1:10: results: expected one value, not a list"]),
    "two errors": ("backoff: 5\nfree_space: 1Mbit\n", ["1:10: backoff: '5' has no unit; expected a time such as 5ms", "2:13: free_space: '1Mbit' is a rate; expected a size such as 50KB"]),
}  # fmt: skip
SECTION = "campaign, deviation, experiment, figures, follows, part, tables, text, title"
STUDIES = {
    "no sections": ("study: x\ntitle: X\n", ["1:1: key 'sections' is missing; known keys: authors, description, sections, source, study, title"]),
    "empty list": ("study: x\ntitle: X\nsections: []\n", ["3:11: sections: is empty; it needs at least one entry"]),
    "mapping instead of a list": ("study: x\ntitle: X\nsections: {title: A}\n", [f"3:11: sections: must be a list of mappings with the keys {SECTION}, not a mapping"]),
    "text instead of a mapping": ("study: x\ntitle: X\nsections: [demo]\n", [f"3:12: sections: must be a mapping with the keys {SECTION}, not 'demo'"]),
    "unknown experiment": ("study: x\ntitle: X\nsections: [{title: A, experiment: demoo}]\n", ["3:35: unknown experiment 'demoo'; did you mean 'demo'? known: demo"]),
    "misspelt key": ("study: x\ntitle: X\nsections: [{titl: A, experiment: demo}]\n", [f"3:13: unknown key 'titl'; did you mean 'title'? known: {SECTION}"]),
    "name that differs from the file's": ("study: y\ntitle: X\nsections: [{title: A, experiment: demo}]\n", ["1:8: study 'y' is in the file x.yaml; write `study: x`, or rename the file"]),
}  # fmt: skip


def messages_of(error: DefinitionError, path: Path) -> list[str]:
    return str(error).replace(f"{path}:", "").splitlines()


@pytest.mark.parametrize("case", CONFIG)
def test_an_error_in_the_configuration_is_reported_at_its_place(case: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG[case][0], encoding="utf-8")
    with pytest.raises(DefinitionError) as caught:
        load_config(path)
    assert messages_of(caught.value, path) == CONFIG[case][1]


@pytest.mark.parametrize("case", STUDIES)
def test_an_error_in_a_study_is_reported_at_its_place(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(STUDIES[case][0], encoding="utf-8")
    with pytest.raises(DefinitionError) as caught:
        load_study_report(path, {"demo"})
    assert messages_of(caught.value, path) == STUDIES[case][1]
