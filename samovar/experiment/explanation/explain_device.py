"""What a testbed says of the device that is its bottleneck: that holds where an experiment says nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from samovar.experiment.keys import Adapter, Testbed, written_default
from samovar.experiment.yaml.tree import Map, Node, Text

DELAY = "delay"


def device_keys(testbed: Testbed) -> tuple[str, ...]:
    """Return the keys of the path that the testbed's device says; none where a router is the bottleneck."""
    return tuple("rtt" if key == DELAY else key for key in _written(testbed))


def device_says(testbed: Testbed, key: str) -> Iterator[tuple[str, str, str]]:
    """Yield what a device says of a key of the path: value, layer and place; then its default."""
    if testbed.device is None or key == DELAY:
        return
    own = DELAY if key == "rtt" else key
    fields = {info.alias or name: info for name, info in Adapter.model_fields.items()}
    both = "2 * " if own == DELAY else ""
    said = _written(testbed).get(own)
    if isinstance(said, Text):
        yield f"{both}{said}", "testbed", str(said.position)
    default = written_default(fields[own]) if own in fields else None
    if default is not None:
        yield f"{both}{default}", "default", ""


def _written(testbed: Testbed) -> Mapping[str, Node]:
    """Return the device as the testbed's file has it; empty where there is none."""
    node: Node | None = testbed.written if testbed.device is not None else None
    for step in ("links", testbed.bottleneck_link or "", "adapter"):
        node = node.get(step) if isinstance(node, Map) else None
    return node if isinstance(node, Map) else {}
