"""What a lab cannot stand for yet: links that are devices. A lab that gains such a device begins here."""

from __future__ import annotations

from collections.abc import Sequence

from samovar.errors import LabError
from samovar.experiment import Testbed


def unsupported_links(testbed: Testbed) -> list[str]:
    """Name the links of a testbed that are devices which no lab has."""
    return [f"link '{name}' is a WLAN" for name, link in testbed.links.items() if link.wlan]


def require_supported_links(testbed: Testbed, others: Sequence[Testbed] = ()) -> None:
    """Raise LabError when a testbed's lab has links that it cannot be given.

    The message names those of the others whose lab runs.
    """
    missing = unsupported_links(testbed)
    if testbed.lab is None or not missing:
        return
    running = ", ".join(
        sorted(one.name for one in others if one.lab is not None and not unsupported_links(one))
    )
    accepted = f"testbeds {running}, or real ones" if running else "a testbed of cables and switches"
    what = f"{', '.join(missing)}, which a lab cannot be yet"
    raise LabError(f"lab {testbed.name}: {what}; accepted: {accepted}; planning and explaining need no lab")
