"""The list of checks is complete, and a check that is stored as JSON is read back unchanged."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

from samovar.campaign import verdict
from samovar.campaign.verdict import Check, verdict_of
from samovar.campaign.verdict.all_checks import CHECKS

FAILED = Check("rate at eth2", "rtr", "10 Mbit/s", "9.5 Mbit/s", False, "suspect", "± 4.0%")


def test_every_function_that_checks_the_evidence_of_a_trial_is_in_the_list_of_checks() -> None:
    modules = [
        import_module(f"{verdict.__name__}.{one.name}") for one in pkgutil.iter_modules(verdict.__path__)
    ]
    found = {
        function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("check_") and list(inspect.signature(function).parameters) == ["evidence"]
    }
    assert found == set(CHECKS)
    assert len(CHECKS) == len(found)


def test_a_failed_check_gives_its_severity_and_a_reason_with_request_tolerance_and_observation() -> None:
    reason = "rate at eth2 at rtr: requested 10 Mbit/s ± 4.0%, observed 9.5 Mbit/s"
    assert (FAILED.verdict, FAILED.reason) == ("suspect", reason)
    assert verdict_of([FAILED, Check("clock", "src", "a", "a", True)]) == ("suspect", (reason,))


def test_a_check_read_from_json_has_the_reason_of_the_stored_check() -> None:
    assert set(FAILED.as_json()) == {"check", "host", "requested", "observed", "ok", "severity"}
    assert Check.from_json(FAILED.as_json()).reason == FAILED.reason
    assert Check.from_json(FAILED.as_json()).as_json() == FAILED.as_json()
