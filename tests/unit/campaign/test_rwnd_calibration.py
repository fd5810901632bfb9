"""Calibration of receive windows: the buffer that gives a window, the probe, and its programs."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from samovar.campaign.calibration.rwnd_calibration import (
    WHOLE,
    WindowProbe,
    fit_buffers,
    parse_window,
    render_fit,
    render_window_probe,
    window_probes,
    window_share,
)
from samovar.plan import Resolved, Trial
from samovar.recipes import Catalogue, TrialScripts, window_floor
from tests.unit.trials import RESOLVED, flow

ROOT = Path(__file__).parents[3]
CATALOGUE = Catalogue(ROOT / "templates")
TARGETS = (1, 536, 1448, 4096, 50_000, 65_535, 65_536, 199_999, 200_000, 1_000_000, 9_998_848, 2**30)
TO_DST = WindowProbe("src", "dst", "172.16.10.2", "172.16.11.2", 200_000)


def scripts_of(resolved: Resolved = RESOLVED) -> TrialScripts:
    trial = Trial(id="t", part="main", treatment={}, replicate=1, block=1, source=resolved)
    return TrialScripts(trial, CATALOGUE, "windows")


@pytest.mark.parametrize("target", TARGETS)
def test_the_window_of_the_fitted_buffer_is_exactly_the_requested_window(target: int) -> None:
    probe = replace(TO_DST, window_bytes=target)
    target = window_floor(target)
    buffers = {ratio: fit_buffers({probe: ratio})["dst"] for ratio in range(1, WHOLE)}
    assert {size * ratio // WHOLE for ratio, size in buffers.items()} == {target}
    smaller = {(size - 1) * ratio // WHOLE for ratio, size in buffers.items()}
    assert max(smaller) < target


@pytest.mark.parametrize("buffer_bytes", [67_108_864, 79_013, 1_580_247, 4 * 9_999_000 + 1_048_576])
def test_the_share_of_the_window_in_its_buffer_is_computed_from_their_sizes(buffer_bytes: int) -> None:
    ratios = range(1, WHOLE)
    assert [window_share(buffer_bytes * ratio // WHOLE, buffer_bytes) for ratio in ratios] == list(ratios)


@pytest.mark.parametrize(("clamp", "size"), [(0, 1000), (1000, 1000), (501, 1000), (5, 0)])
def test_a_window_whose_share_of_its_buffer_is_not_1_to_255_of_256_gives_none(clamp: int, size: int) -> None:
    assert window_share(clamp, size) is None


def test_a_host_gets_the_buffer_with_which_no_window_exceeds_the_requested_one() -> None:
    near, far = replace(TO_DST, window_bytes=50_000), replace(TO_DST, sender="far")
    buffers = fit_buffers({near: 101, far: 162, replace(far, receiver="src"): 162})
    single = fit_buffers({near: 101})["dst"], fit_buffers({far: 162})["dst"]
    assert buffers == {"dst": min(single), "src": single[1]}
    by_ratio = fit_buffers({TO_DST: 101, far: 162})["dst"]
    assert by_ratio * 162 // WHOLE == 200_000 > by_ratio * 101 // WHOLE


def test_a_requested_window_is_probed_once_for_each_pair_of_addresses() -> None:
    flows = (flow("bulk"), flow("more", start_s=1.0), flow("calls", "voip"))
    probes = window_probes(scripts_of(RESOLVED.model_copy(update={"flows": flows})))
    assert probes == (replace(TO_DST, window_bytes=9_999_000),)
    assert probes[0].target_bytes == window_floor(9_999_000) == 9_998_848
    dst = RESOLVED.hosts["dst"].model_copy(update={"rwnd_bytes": None})
    free = RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "dst": dst}})
    assert window_probes(scripts_of(free)) == ()


def test_a_flow_with_its_own_segment_size_is_probed_with_this_size() -> None:
    small = flow("small").model_copy(update={"parameters": {"mss": "1000B"}})
    scripts = scripts_of(RESOLVED.model_copy(update={"flows": (flow(), small)}))
    probes = window_probes(scripts)
    assert [probe.mss_bytes for probe in probes] == [0, 1000]
    sent = [render_window_probe(scripts, probe, 15, {}).send for probe in probes]
    assert [text.rpartition(" 2>&1)")[0].split()[-2:] for text in sent] == [["16384", "0"], ["16384", "1000"]]


def test_the_window_of_a_flow_overrides_that_of_its_host() -> None:
    own = flow().model_copy(update={"rwnd_bytes": 50_000})
    assert window_probes(scripts_of(RESOLVED.model_copy(update={"flows": (own,)})))[0].window_bytes == 50_000


def test_a_receiver_whose_recipe_cannot_fit_the_buffer_is_not_probed() -> None:
    dst = RESOLVED.hosts["dst"].model_copy(update={"os": "freebsd"})
    hosts = {**RESOLVED.hosts, "dst": dst}
    assert window_probes(scripts_of(RESOLVED.model_copy(update={"hosts": hosts}))) == ()


def test_the_probe_uses_a_port_that_no_flow_uses() -> None:
    taken = tuple(flow().model_copy(update={"port": port}) for port in (5301, 5302))
    scripts = scripts_of(RESOLVED.model_copy(update={"flows": taken}))
    assert "172.16.11.2 5303 " in render_window_probe(scripts, TO_DST, 15, {}).send


def test_both_ends_flush_the_tcp_metrics_of_the_probe() -> None:
    texts = render_window_probe(scripts_of(), TO_DST, 15, {"src": {}, "dst": {}})
    assert all("tcp_metrics flush" in text for text in (texts.send, texts.collect))
    assert "tcp_metrics flush" not in texts.receive


def test_the_buffer_of_a_host_with_two_windows_is_fitted_once() -> None:
    flows = (flow(), flow().model_copy(update={"from_address": "172.16.10.9", "rwnd_bytes": 50_000}))
    script = render_fit(scripts_of(RESOLVED.model_copy(update={"flows": flows})), "dst", 1_000_000)
    size = "1000000"
    assert re.findall(r"put_in .*tcp_rmem (.*) \|\|", script) == [f"'4096 {size} {size}'"]


@pytest.mark.parametrize(
    ("output", "ratio", "why"),
    [
        ("window 200000 67108864 1448\n", 0, ""),
        ("window 42467328 67108864 1448\n", 162, ""),
        (
            "window 66000000 66000000 1448\n",
            None,
            "dst: a window of 66000000 B is not a whole number of 256ths of a 66000000 B buffer",
        ),
        ("left out: TimeoutError: timed out\n", None, "dst: TimeoutError: timed out"),
        ("", None, "dst: the connection reported no window"),
    ],
)
def test_the_share_or_the_reason_for_its_absence_is_read_from_the_receiver_s_output(
    output: str, ratio: int | None, why: str
) -> None:
    probed = parse_window(TO_DST, output)
    assert (probed.ratio, probed.left_out) == (ratio, why)


def run_here(scripts: TrialScripts, text: str) -> str:
    """Run a script on this machine."""
    text = text.replace(scripts.folder, "$SAMOVAR_TEST_FOLDER")
    done = subprocess.run(["/bin/sh"], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("mss_bytes", [0, 1000])
def test_the_programs_of_the_probe_report_the_receiver_s_window_and_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mss_bytes: int
) -> None:
    monkeypatch.setenv("SAMOVAR_TEST_FOLDER", str(tmp_path / "base" / "campaign" / "trial"))
    scripts, limit_s = scripts_of(), 10.0
    probe = replace(TO_DST, source="127.0.0.1", address="127.0.0.1", mss_bytes=mss_bytes)
    texts = render_window_probe(scripts, probe, limit_s, {})
    assert run_here(scripts, texts.receive) == ""
    assert run_here(scripts, texts.send) == ""
    found = re.fullmatch(r"window (\d+) (\d+) (\d+)\n", run_here(scripts, texts.collect))
    assert found
    assert min(map(int, found.groups())) > 0
    assert int(found[3]) <= (mss_bytes or 65_536)
    assert list((tmp_path / "base" / "campaign" / "trial").iterdir()) == []


def test_a_sender_without_a_receiver_reports_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMOVAR_TEST_FOLDER", str(tmp_path / "base" / "campaign" / "trial"))
    scripts = scripts_of()
    texts = render_window_probe(scripts, replace(TO_DST, source="127.0.0.1", address="127.0.0.1"), 1.0, {})
    assert (
        run_here(scripts, texts.send) == "left out: ConnectionRefusedError: [Errno 111] Connection refused\n"
    )


def test_a_receiver_that_cannot_listen_reports_the_reason_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMOVAR_TEST_FOLDER", str(tmp_path / "base" / "campaign" / "trial"))
    scripts = scripts_of()
    texts = render_window_probe(scripts, replace(TO_DST, address="203.0.113.1"), 1.0, {})
    assert (
        run_here(scripts, texts.receive) == "left out: OSError: [Errno 99] Cannot assign requested address\n"
    )
    assert list((tmp_path / "base" / "campaign" / "trial").iterdir()) == []


def test_a_receiver_without_a_sender_is_ended_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "base" / "campaign" / "trial"
    monkeypatch.setenv("SAMOVAR_TEST_FOLDER", str(folder))
    scripts = scripts_of()
    texts = render_window_probe(scripts, replace(TO_DST, address="127.0.0.1"), 10.0, {})
    receive = texts.receive.removesuffix("exit 0\n")
    output = run_here(scripts, receive + 'cat window.pid; ls /proc/"$(cat window.pid)"/comm\n')
    process = Path("/proc") / output.split()[0]
    assert process.exists()
    run_here(scripts, texts.abandon)
    assert not process.exists()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("end", ["receive", "send"])
def test_an_end_without_python3_reports_that_the_probe_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setenv("SAMOVAR_TEST_FOLDER", str(tmp_path / "base" / "campaign" / "trial"))
    scripts = scripts_of()
    text = getattr(render_window_probe(scripts, TO_DST, 1.0, {}), end)
    assert run_here(scripts, text.replace("-v python3", "-v python3-of-elsewhere")) == (
        "left out: there is no python3\n"
    )
