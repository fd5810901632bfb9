"""Read the states of hosts, and compare them with settings and earlier states."""

from __future__ import annotations

from samovar.campaign.host_state import changed, parse_state, unmet


def test_a_state_is_read_from_lines_with_consecutive_blanks_reduced_to_one() -> None:
    assert parse_state("a=1\nnot a state line\nb= 4096\t16384  4194304 \nc=\n") == {
        "a": "1",
        "b": "4096 16384 4194304",
        "c": "",
    }


def test_unmet_settings_are_reported_with_both_values() -> None:
    state = {"mtu.eth1": "1500", "qdisc.eth2.10:": "pfifo limit 546p"}
    assert unmet(["mtu.eth1=1500", "qdisc.eth2.10:*=limit 546p"], state) == ()
    found = [
        str(difference) for difference in unmet(["mtu.eth1=600", "cc=cdg", "qdisc.eth2.10:*=137p"], state)
    ]
    assert found == [
        "mtu.eth1: wanted '600', found '1500'",
        "cc: wanted 'cdg', found nothing",
        "qdisc.eth2.10:: wanted '137p', found 'pfifo limit 546p'",
    ]


def test_a_host_that_was_not_restored_differs_in_the_keys_that_changed() -> None:
    assert changed({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == ()
    assert [d.key for d in changed({"a": "1", "b": "2"}, {"a": "3", "c": "4"})] == ["a", "b", "c"]
