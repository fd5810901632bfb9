"""What a controller writes to the leases of hosts."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

import pytest

from samovar.campaign.availability import LeaseRequest


def test_a_user_without_a_name_owns_a_lease_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_name() -> str:
        raise KeyError("getpwuid(): uid not found: 4242")  # getpass.getuser() up to Python 3.12

    monkeypatch.setattr(getpass, "getuser", no_name)
    owner = LeaseRequest(tmp_path, "lab").claim("src").values["owner"]
    assert owner == f"{os.getuid()}@{socket.gethostname()}"
