"""Judge captures by the counts that tcpdump prints when it ends."""

from __future__ import annotations

from typing import Any

import pytest

from samovar.campaign.verdict import Evidence, Verdict, verdict_of
from samovar.campaign.verdict.capture_checks import check_capture_drops
from samovar.hosts import ScriptResult
from samovar.plan import CapturePlan
from tests.unit.campaign.evidence_sample import evidence_of
from tests.unit.trials import RESOLVED

ENDINGS = """\
exit bulk-client 0
err src-eth1 tcpdump: listening on eth1
exit src-eth1 0
err src-eth1 tcpdump: 9 packets captured, 12 packets received by filter, 0 packets dropped by kernel
err src-eth1 12 packets captured
err src-eth1 12 packets received by filter
err src-eth1 {lost} packets dropped by kernel
"""


def ended(text: str, **fields: Any) -> Evidence:
    """Make evidence of a trial with one capture, whose host src printed this text when its programs stopped."""
    capture = CapturePlan(host="src", interface="eth1", snaplen_bytes=96)
    evidence = evidence_of(resolved=RESOLVED.model_copy(update={"captures": (capture,)}), **fields)
    evidence.add_program_endings({"src": ScriptResult("src", "stop", "", 0, text.encode(), b"", 0.0, 0.1)})
    return evidence


def capture_verdict(*messages: str) -> tuple[Verdict, tuple[str, ...]]:
    """Judge the drops of a capture by the messages that tcpdump wrote to standard error."""
    text = "".join(f"err src-eth1 {message}\n" for message in messages)
    return verdict_of(check_capture_drops(ended(text)))


def test_exit_codes_and_messages_of_programs_are_read_by_name() -> None:
    evidence = ended(ENDINGS.format(lost=0))
    assert evidence.exit_codes == {"bulk-client": "0", "src-eth1": "0"}
    assert len(evidence.messages["src-eth1"]) == 5


@pytest.mark.parametrize(("lost", "verdict"), [(0, "valid"), (3, "invalid")])
def test_a_capture_that_lost_packets_makes_the_trial_invalid(lost: int, verdict: str) -> None:
    assert verdict_of(check_capture_drops(ended(ENDINGS.format(lost=lost))))[0] == verdict


def test_packets_that_a_capture_left_unread_make_the_trial_invalid() -> None:
    counts = ["10548 packets captured", "11896 packets received by filter", "0 packets dropped by kernel"]
    verdict, reasons = capture_verdict(*counts)
    assert verdict == "invalid"
    assert reasons == ("packets never read by capture src-eth1 at src: requested 0, observed 1348",)


@pytest.mark.parametrize(("received", "verdict"), [(25510, "invalid"), (25509, "valid")])
def test_packets_that_come_after_a_capture_has_read_everything_are_accepted(
    received: int, verdict: str
) -> None:
    # FreeBSD's bpf(4) delivers packets after up to a second; a switch or neighbour may send some meanwhile.
    observed, reasons = capture_verdict(
        "tcpdump: listening on em1, link-type EN10MB (Ethernet), snapshot length 96 bytes",
        "tcpdump: 25000 packets captured, 25509 packets received by filter, 0 packets dropped by kernel",
        f"tcpdump: 25509 packets captured, {received} packets received by filter, 0 packets dropped by kernel",
        "25509 packets captured",
        "25511 packets received by filter",
        "0 packets dropped by kernel",
    )
    assert observed == verdict
    reason = "packets never read by capture src-eth1 at src: requested 0, observed 1"
    assert reasons == (() if verdict == "valid" else (reason,))


def test_a_capture_without_final_counts_makes_the_trial_invalid() -> None:
    assert capture_verdict("tcpdump: listening on eth1") == (
        "invalid",
        (
            "packets dropped by kernel in capture src-eth1 at src: requested 0, observed no count: tcpdump did not "
            "end by itself",
        ),
    )
