"""Quantities with units: parsing, errors and formatting."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar import units
from samovar.experiment.keys.value_types import MTU
from samovar.units import UnitError


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_size, "50KB", 50_000),
        (units.parse_size, "50kB", 50_000),
        (units.parse_size, "1.5MB", 1_500_000),
        (units.parse_size, "0.125KiB", 128),
        (units.parse_size, "3TiB", 3 * 2**40),
        (units.parse_size, "1500B", 1500),
        (units.parse_rate, "40Mbit", 40_000_000),
        (units.parse_rate, "40mbit", 40_000_000),
        (units.parse_rate, "1.5GBIT", 1_500_000_000),
        (units.parse_rate, "500bit", 500),
        (units.parse_packets, "546packets", 546),
        (units.parse_packets, "1packet", 1),
        (units.parse_duration, "5ms", 0.005),
        (units.parse_duration, "1.5min", 90.0),
        (units.parse_duration, "0.1us", 1e-7),
        (units.parse_duration, "2h", 7200.0),
        (units.parse_share, "2%", 0.02),
        (units.parse_share, "0%", 0.0),
        (units.parse_share, "0.1%", 0.001),
        (units.parse_drift, "50ppm", 50.0),
        (units.parse_drift, "0.5ppm", 0.5),
        (MTU.parse, "1500", 1500),
        (MTU.parse, "1500B", 1500),
        (units.parse_number, "-0.5", -0.5),
    ],
)
def test_a_quantity_with_its_unit_is_read_exactly(
    parse: Callable[[str], float], text: str, value: float
) -> None:
    assert parse(text) == value
    assert type(parse(text)) is type(value)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (
            units.parse_rate,
            "40mbps",
            "'40mbps' is not a rate; expected a rate such as 40Mbit (units: bit, Kbit, Mbit, Gbit)",
        ),
        (
            units.parse_rate,
            "40Mb/s",
            "'40Mb/s' is not a rate; expected a rate such as 40Mbit (units: bit, Kbit, Mbit, Gbit)",
        ),
        (
            units.parse_rate,
            "40 Mbit",
            "'40 Mbit' is not a rate; expected a rate such as 40Mbit (units: bit, Kbit, Mbit, Gbit)",
        ),
        (
            units.parse_rate,
            "40M",
            "'40M' is not a rate; expected a rate such as 40Mbit (units: bit, Kbit, Mbit, Gbit)",
        ),
        (
            units.parse_rate,
            "40MB",
            "'40MB' is a size; expected a rate such as 40Mbit",
        ),
        (units.parse_rate, "0Mbit", "rate '0Mbit' is zero; expected more, such as 40Mbit"),
        (units.parse_size, "50", "'50' has no unit; expected a size such as 50KB"),
        (
            units.parse_size,
            "50kb",
            "'50kb' is not a size; expected a size such as 50KB (units: B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)",
        ),
        (
            units.parse_size,
            "50mib",
            "'50mib' is not a size; expected a size such as 50KB (units: B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)",
        ),
        (units.parse_size, "-1KB", "'-1KB' is not a size; expected a size such as 50KB"),
        (units.parse_size, "+1KB", "'+1KB' is not a size; expected a size such as 50KB"),
        (units.parse_size, "nan", "'nan' is not a size; expected a size such as 50KB"),
        (units.parse_size, "infB", "'infB' is not a size; expected a size such as 50KB"),
        (units.parse_size, "1e6B", "'1e6B' is not a size; expected a size such as 50KB"),
        (units.parse_size, "٣KB", "'٣KB' is not a size; expected a size such as 50KB"),
        (units.parse_size, "", "'' is not a size; expected a size such as 50KB"),
        (
            units.parse_size,
            "0.0001KB",
            "size '0.0001KB' is not a whole number of bytes; expected one such as 50KB",
        ),
        (
            units.parse_size,
            "999999999999TB",
            "size '999999999999TB' is too large; expected one such as 50KB",
        ),
        (
            units.parse_duration,
            "5m",
            "'5m' is not a time; expected a time such as 5ms (units: ns, us, ms, s, min, h)",
        ),
        (
            units.parse_duration,
            "5sec",
            "'5sec' is not a time; expected a time such as 5ms (units: ns, us, ms, s, min, h)",
        ),
        (units.parse_duration, "0s", "time '0s' is zero; expected more, such as 5ms"),
        (
            units.parse_packets,
            "5pkts",
            "'5pkts' is not a count of packets; expected a count of packets such as 546packets (units: packets)",
        ),
        (
            units.parse_packets,
            "1.5packets",
            "count of packets '1.5packets' is not a whole number of packets; expected one such as 546packets",
        ),
        (units.parse_share, "101%", "share '101%' is more than 100%; expected 0% to 100%"),
        (units.parse_share, "0.02", "'0.02' has no unit; expected a share such as 2%"),
        (units.parse_drift, "50", "'50' has no unit; expected a drift such as 50ppm"),
        (units.parse_drift, "50PPM", "'50PPM' is not a drift; expected a drift such as 50ppm (units: ppm)"),
        (units.parse_drift, "0ppm", "drift '0ppm' is zero; expected more, such as 50ppm"),
        (units.parse_drift, "-5ppm", "'-5ppm' is not a drift; expected a drift such as 50ppm"),
        (MTU.parse, "67", "MTU in bytes 67 is out of range; expected one from 68 to 65535"),
        (MTU.parse, "1500KB", "'1500KB' is not a whole number; expected digits only, from 68 to 65535"),
        (
            units.parse_number,
            "inf",
            "'inf' is not a number; expected digits such as 546 or 0.98, without a unit",
        ),
    ],
)
def test_an_invalid_quantity_is_refused_with_an_example_of_a_valid_one(
    parse: Callable[[str], object], text: str, message: str
) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_zero_is_accepted_if_it_is_allowed() -> None:
    assert units.parse_duration("0ms", allow_zero=True) == 0.0


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (units.format_bytes(819_000), "819KB"),
        (units.format_bytes(1_234_567_890, 3), "1.23GB"),
        (units.format_bytes(0), "0B"),
        (units.format_rate(40_000_000), "40Mbit"),
        (units.format_rate(1_536), "1.536Kbit"),
        (units.format_duration(0.002), "2ms"),
        (units.format_duration(80), "80s"),
        (units.format_duration(5400), "90min"),
        (units.format_duration(0), "0s"),
        (units.format_duration(33_217.5, 2), "9.2h"),
    ],
)
def test_a_quantity_is_formatted_with_the_most_readable_unit(written: str, text: str) -> None:
    assert written == text


@given(st.integers(min_value=1, max_value=10**18))
def test_a_formatted_size_is_parsed_to_the_same_value(count_bytes: int) -> None:
    assert units.parse_size(units.format_bytes(count_bytes)) == count_bytes


@given(st.integers(min_value=1, max_value=10**18))
def test_a_formatted_rate_is_parsed_to_the_same_value(rate_bps: int) -> None:
    assert units.parse_rate(units.format_rate(rate_bps)) == rate_bps


@given(st.integers(min_value=1, max_value=10**15))
def test_a_formatted_time_is_parsed_to_the_same_value(count_ns: int) -> None:
    duration_s = count_ns / 10**9
    assert units.parse_duration(units.format_duration(duration_s)) == duration_s


@given(st.text())
def test_any_text_is_parsed_as_a_size_or_refused(text: str) -> None:
    try:
        assert units.parse_size(text) > 0
    except UnitError as error:
        assert "expected" in str(error) or "did you mean" in str(error)


@pytest.mark.parametrize(("text", "per_s"), [("2/s", 2.0), ("0.5/s", 0.5), ("30/min", 0.5), ("36/h", 0.01)])
def test_a_frequency_is_converted_to_events_per_second(text: str, per_s: float) -> None:
    assert units.parse_frequency(text) == per_s


@pytest.mark.parametrize("text", ["2", "0/s", "-1/s", "2/ms", "2 /s", "s", "2/s/s"])
def test_an_invalid_frequency_is_refused(text: str) -> None:
    with pytest.raises(UnitError, match="is not a frequency; expected one above zero such as 2/s"):
        units.parse_frequency(text)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (units.parse_count, "010", "number '010' begins with a zero; expected 10"),
        (units.parse_number, "-010", "number '-010' begins with a zero; expected -10"),
        (units.parse_duration, "010ms", "number '010' begins with a zero; expected 10"),
        (units.parse_size, "00B", "number '00' begins with a zero; expected 0"),
        (MTU.parse, "01500", "number '01500' begins with a zero; expected 1500"),
    ],
)
def test_a_number_that_may_be_octal_is_refused(
    parse: Callable[[str], float], text: str, message: str
) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_a_quantity_is_split_into_number_unit_and_kind() -> None:
    assert units.split_quantity("1.50KB") == (Decimal("1.50"), "KB", units.SIZE)
    assert units.split_quantity("40mbit") == (Decimal(40), "mbit", units.RATE)
    assert units.split_quantity("7") == (Decimal(7), "", None)
    assert [units.split_quantity(text) for text in ("7 KB", "7foo", "KB", "-7KB", "")] == [None] * 5


@given(st.integers(0, 10**6))
def test_a_formatted_share_is_parsed_to_the_same_value(millionths: int) -> None:
    share = millionths / 10**6
    assert units.parse_share(units.format_share(share)) == share


@given(st.integers(1, 10**9))
def test_a_formatted_drift_is_parsed_to_the_same_value(thousandths: int) -> None:
    drift_ppm = thousandths / 10**3
    assert units.parse_drift(units.format_drift(drift_ppm)) == drift_ppm
