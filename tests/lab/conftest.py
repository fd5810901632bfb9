"""Fixtures that several files of lab tests use: a checkout with a running lab, and a real sshd."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.lab.campaigns import Checkout, make_checkout
from tests.lab.sshd import Sshd, running


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    with make_checkout(tmp_path_factory.mktemp("checkout")).running_lab() as made:
        yield made


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def host() -> str:
    """A unique name of a host, by which a test finds its own files in /tmp."""
    return f"test-{secrets.token_hex(6)}"
