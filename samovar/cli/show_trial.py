"""One trial in full: what it sets path and hosts to, its flows as they were drawn, what it records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from samovar.cli.wording import clock, columns
from samovar.plan import DirectionPlan, FlowPlan, HostPlan, PathPlan, Resolved, Trial
from samovar.units import format_bytes, format_duration, format_rate, format_share

Row = Sequence[str]


def trial_lines(trial: Trial) -> Iterator[str]:
    """Show a trial as it will be run; what it leaves as it is found is not shown."""
    resolved = trial.resolved
    levels = ", ".join(f"{name} {level}" for name, level in trial.treatment.items())
    yield f"{trial.id}: part {trial.part}, replicate {trial.replicate}, block {trial.block}"
    yield from [f"  {levels}"] if levels else []
    yield f"  traffic {clock(resolved.duration_s)}, at most {clock(resolved.deadline_s)}{_stop(resolved)}"
    yield from _table("path", list(_path(resolved.path)))
    yield from _table("hosts", [row for name, host in resolved.hosts.items() for row in _host(name, host)])
    yield from _table("flows", _flows(resolved.flows))
    yield from _table("records", list(_records(resolved)))


def _table(title: str, rows: Sequence[Row]) -> Iterator[str]:
    """Show rows below a title, without columns that have nothing."""
    if not rows:
        return
    yield ""
    yield title
    kept = [index for index in range(len(rows[0])) if any(row[index] for row in rows[1:] or rows)]
    yield from (f"  {line}" for line in columns([row[index] for index in kept] for row in rows))


def _stop(resolved: Resolved) -> str:
    stop = resolved.stop
    if stop is None:
        return ""
    ends = [f"after {format_duration(stop.after_s)}"] if stop.after_s is not None else []
    return f", stopped {' or '.join([*ends, *([f'when {stop.when} ends'] if stop.when else [])])}"


def _path(path: PathPlan | None) -> Iterator[Row]:
    if path is None:
        return
    yield ("", "rate", "delay", "jitter", "loss", "reorder", "duplicate", "aqm", "buffer", "")
    yield from (_direction(name, way) for name, way in (("down", path.down), ("up", path.up)))
    for one in path.classes:
        match = ", ".join(f"{m.from_subnet or 'any'} > {m.to_subnet or 'any'}" for m in one.match)
        delays = f"{_time(one.delay_down_s)} down, {_time(one.delay_up_s)} up"
        yield ("class", "", delays, "", _share(one.loss), "", "", "", "", match)


def _direction(name: str, way: DirectionPlan) -> Row:
    rate = "" if way.rate_bps is None else format_rate(way.rate_bps)
    packets = "" if way.buffer_packets is None else f"{way.buffer_packets} packets"
    size = "" if way.buffer_bytes is None else format_bytes(way.buffer_bytes)
    buffer = f"{packets} ({size})" if packets and size else packets or size
    burst = f", bursts of {way.loss_burst_packets:g}" if way.loss_burst_packets else ""
    spoilt = (f"{_share(way.loss)}{burst}", _share(way.reorder), _share(way.duplicate))
    delays = (_time(way.delay_s), _time(way.jitter_s))
    return (name, rate, *delays, *spoilt, way.aqm or "", buffer, _pairs(way.aqm_parameters))


def _host(name: str, host: HostPlan) -> Iterator[Row]:
    own = {"cc": host.cc, "rwnd": _size(host.rwnd_bytes), "mtu": host.mtu_bytes, "txd": host.txd}
    nested = {"cc": host.cc_parameters, **host.settings}
    others = {f"{recipe}.{key}": text for recipe, keys in nested.items() for key, text in keys.items()}
    yield name, host.role, _pairs({**own, **others})


def _flows(flows: Sequence[FlowPlan]) -> list[Row]:
    head = ("", "generator", "from", "to", "port", "start", "end", "cc", "rwnd", "dscp", "")
    return [head, *map(_flow, flows)]


def _flow(flow: FlowPlan) -> Row:
    ends = [
        *([f"size {format_bytes(flow.size_bytes)}"] if flow.size_bytes is not None else []),
        *([f"after {format_duration(flow.duration_s)}"] if flow.duration_s is not None else []),
        *([f"with {flow.until}"] if flow.until else []),
    ]
    return (
        flow.label,
        flow.generator,
        flow.from_host,
        flow.to_host,
        str(flow.port),
        format_duration(flow.start_s),
        *(" ".join(ends), flow.cc or "", _size(flow.rwnd_bytes)),
        "" if flow.dscp is None else str(flow.dscp),
        _pairs(flow.parameters),
    )


def _records(resolved: Resolved) -> Iterator[Row]:
    for capture in resolved.captures:
        yield "capture", capture.host, capture.interface, f"{capture.snaplen_bytes} B a packet"
    for logger in resolved.loggers:
        every = {} if logger.interval_s is None else {"interval": format_duration(logger.interval_s)}
        yield logger.logger, logger.host, logger.interface, _pairs({**every, **logger.parameters})


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items() if value not in (None, ""))


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else format_bytes(size_bytes)


def _time(seconds: float) -> str:
    return format_duration(seconds) if seconds else ""


def _share(share: float) -> str:
    return format_share(share) if share else ""
