"""The kernel's limit for capture buffers on FreeBSD: raised with a host's settings, and restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from samovar.campaign.host_state import parse_state, unmet
from samovar.plan import LoggerPlan
from samovar.recipes import TrialScripts
from tests.unit.recipes.freebsd_sample import CATALOGUE, VALUES, kernel, replay
from tests.unit.trials import RESOLVED, TRIAL

OID = "net.bpf.maxbufsize"
DEFAULT = 524_288
REQUESTED = 16_777_216


def block(name: str, was: Mapping[str, str] | None = None) -> str:
    text = CATALOGUE.recipe("setting", "bpf", "freebsd").render(name, {**VALUES["bpf"], "was": was or {}})
    return f"kernel_values {OID}\n{text}" if name in ("read", "set") else text


@pytest.mark.parametrize(
    ("most", "meanwhile", "orders"),
    [
        (DEFAULT, REQUESTED, [f"{OID}={REQUESTED}", f"{OID}={DEFAULT}"]),
        (REQUESTED, REQUESTED, []),
        (4 * REQUESTED, 4 * REQUESTED, []),
    ],
)
def test_a_limit_of_capture_buffers_that_is_too_low_is_raised_and_restored(
    most: int, meanwhile: int, orders: list[str]
) -> None:
    undo = block("restore", {OID: str(most)})
    script = "echo ----\n".join((block("read"), block("set") + block("read"), undo + block("read")))
    done = replay(script, {}, kernel({OID: most}))
    before, between, after = (parse_state(part) for part in done.stdout.split("----\n"))
    assert (before[OID], between[OID], after) == (str(most), str(meanwhile), before)
    assert unmet(block("wanted").split(), between) == ()
    assert done.stderr.splitlines() == orders


def test_a_limit_of_capture_buffers_that_the_kernel_did_not_raise_is_reported() -> None:
    unchanged = f"sysctl() {{ echo '{OID}: {DEFAULT}'; }}"
    done = replay(block("set") + block("read"), {}, unchanged)
    assert [found.key for found in unmet(block("wanted").split(), parse_state(done.stdout))] == ["bpf.room"]


def scripts(**changes: object) -> TrialScripts:
    """Return the scripts of the sample trial on FreeBSD hosts, with captures at src and dst and no path."""
    hosts = {
        name: host.model_copy(update={"os": "freebsd", "release": "14.0"})
        for name, host in RESOLVED.hosts.items()
    }
    update = {"hosts": hosts, "path": None, "loggers": (), **changes}
    resolved = RESOLVED.model_copy(update=update)
    return TrialScripts(replace(TRIAL, source=resolved), CATALOGUE, "c")


class State(dict[str, str]):
    """A state of a host in which every key has a value."""

    def __missing__(self, key: str) -> str:
        return "1"


WAS = State({OID: str(DEFAULT)})


def test_the_limit_of_capture_buffers_is_restored_after_a_trial_ends_fails_or_loses_its_controller() -> None:
    text = scripts()
    assert f"knob {OID}\n" in text.read("src")
    assert f"turn {OID} {REQUESTED}\n" in text.set("src", WAS)
    assert "-B 16384 " in (text.arm("src", {}) or "")
    for undone in (text.finish("src", WAS), text.restore("src", WAS, deletes=True), text.on_loss("src", WAS)):
        assert f"back {OID} {DEFAULT}\n" in undone
    for own in (text.arm("src", {}), text.stop("src")):
        assert OID not in (own or "")


def test_the_limit_of_capture_buffers_of_a_host_without_captures_is_not_changed() -> None:
    assert OID not in scripts().read("rtr")
    assert OID not in scripts(captures=()).read("src")


def test_the_limit_of_capture_buffers_is_the_largest_buffer_of_a_host_s_captures() -> None:
    larger = LoggerPlan(logger="tcpdump", host="src", interface="em2", parameters={"buffer_kib": "65536"})
    text = scripts(loggers=(larger,))
    assert f"turn {OID} {65_536 * 1024}\n" in text.set("src", WAS)
    assert f"turn {OID} {REQUESTED}\n" in text.set("dst", WAS)
