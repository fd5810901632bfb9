"""The owner that a controller writes to the lease of a host."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

import pytest

from samovar.campaign.availability import LeaseRequest


def test_the_lease_of_a_user_without_a_name_has_the_numeric_user_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_name() -> str:
        raise KeyError("getpwuid(): uid not found: 4242")  # as getpass.getuser() does up to Python 3.12

    monkeypatch.setattr(getpass, "getuser", no_name)
    owner = LeaseRequest(tmp_path, "lab").claim("src").values["owner"]
    assert owner == f"{os.getuid()}@{socket.gethostname()}"
