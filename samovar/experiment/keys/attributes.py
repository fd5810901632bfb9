"""Keys of a definition, each with the attribute that holds its value."""

from __future__ import annotations

PATH_FIELDS = {
    "rate": "rate_bps",
    "rtt": "rtt_s",
    "delay": "delay_s",
    "jitter": "jitter_s",
    "loss": "loss",
    "loss_burst": "loss_burst_packets",
    "reorder": "reorder",
    "duplicate": "duplicate",
    "aqm": "aqm",
    "buffer": "buffer",
}
FLOW_FIELDS = {
    "generator": "generator",
    "from": "from_end",
    "to": "to_end",
    "start": "start_s",
    "size": "size_bytes",
    "duration": "duration_s",
    "until": "until",
    "cc": "cc",
    "rwnd": "rwnd_bytes",
    "dscp": "dscp",
    "count": "count",
    "every": "every_s",
}
ARRIVALS_FIELDS = {"poisson": "poisson_per_s", "until": "until_s", "count": "count"}
STOP_FIELDS = {"after": "after_s", "when": "when"}
