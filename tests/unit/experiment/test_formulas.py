"""Formulas: exact arithmetic on quantities, checks of their dimensions, and errors for every other text."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar.experiment import keys
from samovar.experiment.formula import (
    KEYS_OF_FLOW,
    KEYS_OF_PATH,
    LONGEST,
    Formula,
    FormulaReader,
    Scope,
    formula_text,
    is_formula,
)
from samovar.experiment.keys import PARAMETER_TYPES, NetworkPath, keys_of, value_types
from samovar.experiment.values import Buffer
from samovar.units import UnitError

PATH = {
    "path.rate.down": 40_000_000,
    "path.rate.up": 10_000_000,
    "path.rtt": 0.02,
    "path.buffer.down": Buffer(100, None),
    "path.loss.down": 0.02,
    "mtu": 1200,
    "rwnd": 64_000,
    "traffic.web-1.size": 1_000_000,
}


def value(text: str, parse: Callable[[str], object], **changes: object) -> object:
    return Scope({**PATH, **changes}.get).value(parse(text))


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (value_types.BUFFER_OR_FORMULA.parse, "1 BDP", Buffer(83, 100_000)),
        (value_types.BUFFER_OR_FORMULA.parse, "1BDP", Buffer(83, 100_000)),
        (value_types.BUFFER_OR_FORMULA.parse, "BDP.up", Buffer(21, 25_000)),
        (value_types.BUFFER_OR_FORMULA.parse, "2 * BDP + 10packets", Buffer(177, 212_000)),
        (value_types.BUFFER_OR_FORMULA.parse, "max(1 BDP, 50KB)", Buffer(83, 100_000)),
        (value_types.BUFFER_OR_FORMULA.parse, "min(1 BDP, 50KB, 1MB)", Buffer(42, 50_000)),
        (value_types.BUFFER_OR_FORMULA.parse, "3 * 20packets", Buffer(60, 72_000)),
        (value_types.BUFFER_OR_FORMULA.parse, "BDP / MTU * 1packet", Buffer(83, 100_000)),
        (value_types.RATE_OR_FORMULA.parse, "path.rate / 2", 20_000_000),
        (value_types.RATE_OR_FORMULA.parse, "RATE.up", 10_000_000),
        (value_types.RATE_OR_FORMULA.parse, "BDP / RTT", 40_000_000),
        (value_types.RATE_OR_FORMULA.parse, "(rwnd / RTT)", 25_600_000),
        (value_types.RATE_OR_FORMULA.parse, "10packets / 1ms", 96_000_000),
        (value_types.TIME_OR_FORMULA.parse, "20 RTT", 0.4),
        (value_types.TIME_OR_FORMULA.parse, "traffic.web-1.size / path.rate", 0.2),
        (value_types.TIME_OR_FORMULA.parse, "0.1s + 0.2s", 0.3),
        (value_types.DELAY_OR_FORMULA.parse, "RTT - RTT", 0.0),
        (value_types.SIZE_OR_FORMULA.parse, "BUFFER + 1packet", 121_200),
        (value_types.SIZE_OR_FORMULA.parse, "BDP - 50% * BDP", 50_000),
        (value_types.PACKETS_OR_FORMULA.parse, "BDP", 83),
        (value_types.PACKETS_OR_FORMULA.parse, "BUFFER / 3", 33),
        (value_types.SHARE_OR_FORMULA.parse, "path.loss / 2", 0.01),
        (value_types.SHARE_OR_FORMULA.parse, "1% + 2 * 0.5%", 0.02),
        (value_types.SIZE_OR_FORMULA.parse, "(1 + 2) * 3 * 1KB - 1KB", 8_000),
        (value_types.SIZE_OR_FORMULA.parse, "8KB / 2 / 2", 2_000),
        (value_types.SIZE_OR_FORMULA.parse, "8KB - 4KB - 2KB", 2_000),
    ],
)
def test_a_formula_is_evaluated_exactly_to_a_value_of_the_type_of_its_key(
    parse: Callable[[str], object], text: str, expected: object
) -> None:
    assert value(text, parse) == expected
    assert type(value(text, parse)) is type(expected)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (
            value_types.BUFFER_OR_FORMULA.parse,
            "20 RTT",
            "'20 RTT' is a time; expected a size or a count of packets such as 1 BDP",
        ),
        (value_types.TIME_OR_FORMULA.parse, "1 BDP", "'1 BDP' is a size; expected a time such as 20 RTT"),
        (value_types.SIZE_OR_FORMULA.parse, "2 * 3", "'2 * 3' is a number; expected a size such as 1 BDP"),
        (
            value_types.RATE_OR_FORMULA.parse,
            "BDP * RTT",
            "'BDP * RTT' is a quantity in bytes * seconds; expected a rate such as path.rate / 2",
        ),
        (
            value_types.SHARE_OR_FORMULA.parse,
            "1 / 2",
            "'1 / 2' is a number; expected a share such as path.loss / 2",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "1 BDP + 20ms",
            "'1 BDP + 20ms': a size and a time cannot be added or compared",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "max(1 BDP, 3)",
            "'max(1 BDP, 3)': a size and a number cannot be added or compared",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "2 * BPD",
            "'2 * BPD': unknown name 'BPD'; did you mean 'BDP'? known: BDP, BUFFER, MTU, RATE, RTT, duration, mtu, "
            "path.buffer, path.delay.down, path.duplicate, path.jitter, path.loss, path.loss_burst, path.rate, "
            "path.reorder, path.rtt, rwnd, traffic.<flow>.count, traffic.<flow>.duration, traffic.<flow>.every, "
            "traffic.<flow>.rwnd, traffic.<flow>.size, traffic.<flow>.start, txd",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "2 * ",
            "'2 * ': it ends too early; expected numbers, quantities, names, + - * / ( ) min and max",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "2 * (BDP",
            "'2 * (BDP': cannot be read at '(', column 5; expected numbers, quantities, names, + - * / ( ) min and max",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "BDP)",
            "'BDP)': cannot be read at ')', column 4; expected numbers, quantities, names, + - * / ( ) min and max",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "BDP BDP",
            "'BDP BDP': cannot be read at 'BDP', column 5; expected numbers, quantities, names, + - * / ( ) min and max",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "2 + 10 KB",
            "'2 + 10 KB': a space before the unit in '10 KB'; did you mean 10KB?",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "BDP + 10kb",
            "'BDP + 10kb': '10kb' at column 7 is not a quantity; expected one such as 50KB, 40Mbit, 5ms, 10packets or 2%",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "BDP ^ 2",
            "'BDP ^ 2': cannot be read at '^', column 5; expected numbers, quantities, names, + - * / ( ) min and max",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "BDP ** 2",
            "'BDP ** 2': cannot be read at '*', column 6; expected numbers, quantities, names, + - * / ( ) min and max",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "(-BDP)",
            "'(-BDP)': cannot be read at '-', column 2; expected numbers, quantities, names, + - * / ( ) min and max",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "max BDP",
            "'max BDP': cannot be read at 'BDP', column 5; expected numbers, quantities, names, + - * / ( ) min and max",
        ),
        (value_types.SIZE_OR_FORMULA.parse, "BDP / path.rate.sideways", None),
        (value_types.SIZE_OR_FORMULA.parse, "2BDP RTT", None),
        (value_types.SIZE_OR_FORMULA.parse, "1 + 10KB BDP", None),
        (value_types.SIZE_OR_FORMULA.parse, "2 BDP RTT", None),
        (value_types.SIZE_OR_FORMULA.parse, "max()", None),
        (value_types.SIZE_OR_FORMULA.parse, "max(*BDP)", None),
        (value_types.SIZE_OR_FORMULA.parse, "(BDP, RTT)", None),
        (value_types.SIZE_OR_FORMULA.parse, "(BDP)(2)", None),
        (value_types.SIZE_OR_FORMULA.parse, "BDP // 2", None),
        (value_types.SIZE_OR_FORMULA.parse, "2 * max", None),
        (value_types.SIZE_OR_FORMULA.parse, "__import__('os').system('x')", None),
        (value_types.SIZE_OR_FORMULA.parse, "BDP.__class__", None),
        (value_types.SIZE_OR_FORMULA.parse, "[BDP for BDP in ()]", None),
        (value_types.SIZE_OR_FORMULA.parse, "lambda: BDP()", None),
        (value_types.SIZE_OR_FORMULA.parse, "BDP; BDP * 1", None),
    ],
)
def test_an_invalid_formula_is_refused_with_the_reason(
    parse: Callable[[str], object], text: str, message: str | None
) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text)
    assert message is None or str(caught.value) == message
    assert "expected" in str(caught.value) or "known" in str(caught.value) or message


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (
            value_types.SIZE_OR_FORMULA.parse,
            "BDP - 1MB",
            "'BDP - 1MB': is negative; expected a size such as 1 BDP",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "BDP - BDP",
            "'BDP - BDP': is zero; expected a size such as 1 BDP",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "BDP / 1000000000",
            "'BDP / 1000000000': is less than one; expected a size such as 1 BDP",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "BDP * 999999999999999",
            "'BDP * 999999999999999': is too large; expected a size such as 1 BDP",
        ),
        (
            value_types.SHARE_OR_FORMULA.parse,
            "60 * path.loss",
            "'60 * path.loss': is more than 100%; expected a share such as path.loss / 2",
        ),
        (
            value_types.SIZE_OR_FORMULA.parse,
            "1KB / (1 - 1)",
            "'1KB / (1 - 1)': a division by zero",
        ),
        (
            value_types.TIME_OR_FORMULA.parse,
            "5 * duration",
            "'5 * duration': duration has no value here (set it, or make it a factor)",
        ),
    ],
)
def test_a_formula_whose_value_is_out_of_range_or_undefined_is_refused(
    parse: Callable[[str], object], text: str, message: str
) -> None:
    with pytest.raises(UnitError) as caught:
        value(text, parse)
    assert str(caught.value) == message


def test_formulas_that_depend_on_each_other_are_refused() -> None:
    rwnd, buffer = (
        value_types.SIZE_OR_FORMULA.parse("2 * BUFFER"),
        value_types.BUFFER_OR_FORMULA.parse("rwnd / 2"),
    )
    scope = Scope({**PATH, "rwnd": rwnd, "path.buffer.down": buffer}.get)
    with pytest.raises(
        UnitError, match=r"depends on itself \(path.buffer.down -> rwnd -> path.buffer.down\)"
    ):
        scope.value(rwnd)
    assert Scope(PATH.get).value(rwnd) == 240_000, "an error in one scope does not affect another scope"


def test_a_formula_may_use_the_value_of_another_formula() -> None:
    values = {
        **PATH,
        "path.buffer.down": value_types.BUFFER_OR_FORMULA.parse("2 BDP"),
        "rwnd": value_types.SIZE_OR_FORMULA.parse("BUFFER / 4"),
    }
    assert Scope(values.get).value(value_types.SIZE_OR_FORMULA.parse("2 * rwnd")) == 100_000


def test_the_bdp_uses_the_sum_of_the_delays_of_both_directions_if_no_rtt_is_set() -> None:
    values = {"path.rate.down": 8_000_000, "path.delay.down": 0.03, "path.delay.up": 0.01}
    assert Scope(values.get).value(value_types.SIZE_OR_FORMULA.parse("BDP")) == 40_000


def test_a_packet_in_a_formula_has_1500_bytes_if_no_mtu_is_set() -> None:
    assert Scope(lambda name: None).value(value_types.SIZE_OR_FORMULA.parse("10packets + 0KB")) == 15_000


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("duration", "RTT / 4", "5ms"),
        ("size", "2 BDP", "200000B"),
        ("rate", "path.rate / 3", "13333333bit"),
        ("share", "path.loss / 2", "1%"),
        ("packets", "3 * 2packets", "6packets"),
        ("packets", "2 BDP", "167packets"),
        ("duration", "RTT - RTT", "0s"),
    ],
)
def test_the_value_of_a_parameter_s_formula_is_written_with_its_unit(
    type_: str, text: str, expected: str
) -> None:
    formula = PARAMETER_TYPES[type_].parse(text)
    assert isinstance(formula, Formula)
    assert formula_text(formula, Scope(PATH.get)) == expected


@pytest.mark.parametrize(
    "text", ["50KB", "40 Mbit", "40Mb/s", "-5KB", "1e6", "10:20", "010", "no", "0x1F", "1,5ms", "five", "nan"]
)
def test_a_single_quantity_is_not_a_formula(text: str) -> None:
    assert not is_formula(text)


@pytest.mark.parametrize(
    "text", ["1 BDP", "20 rtt", "RTT", "path.rate", "2*3", "(1)", "max(1)", "5ms-1ms", "1 / 2"]
)
def test_a_text_with_a_name_an_operator_or_a_parenthesis_is_a_formula(text: str) -> None:
    assert is_formula(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 500 + "1", f"a formula of 501 characters; expected at most {LONGEST}"),
        ("(" * 99 + "BDP" + ")" * 98, "cannot be read at '('"),
        ("max(" * 40 + "1", "cannot be read at '('"),
        ("9" * 100 + "KB * 1", "is not a quantity"),
        ("BDP" + "*9" * 90, "is too large"),
        ("1KB" + "/3" * 90 + "*3" * 8, "is less than one"),
    ],
    ids=[
        "too many characters",
        "nested parentheses",
        "nested calls",
        "long number",
        "large product",
        "small quotient",
    ],
)
def test_excessively_long_deep_or_large_formulas_are_refused(text: str, message: str) -> None:
    with pytest.raises(UnitError, match=message.replace("(", r"\(")):
        value(text, value_types.SIZE_OR_FORMULA.parse)


Tree = tuple[str, Fraction]


def numbers() -> st.SearchStrategy[Tree]:
    return st.decimals(0, 10**6, places=3, allow_nan=False).map(lambda one: (f"{one:f}", Fraction(one)))


def operations(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    signs = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}

    def combine(sign: str, left: Tree, right: Tree) -> Tree:
        if sign == "/" and right[1] == 0:
            sign = "+"
        return f"({left[0]} {sign} {right[0]})", signs[sign](left[1], right[1])

    def call(word: str, left: Tree, right: Tree) -> Tree:
        return f"{word}({left[0]}, {right[0]})", (min if word == "min" else max)(left[1], right[1])

    both = (children, children)
    return st.builds(combine, st.sampled_from("+-*/"), *both) | st.builds(
        call, st.sampled_from(["min", "max"]), *both
    )


@given(st.recursive(numbers(), operations, max_leaves=8))
def test_the_arithmetic_of_formulas_is_exact(tree: Tree) -> None:
    text, expected = tree
    assert FormulaReader(text).read().number(lambda name: Fraction(0)) == expected


@given(st.lists(st.tuples(st.sampled_from("+-*/"), st.integers(1, 99)), max_size=20), st.integers(1, 99))
def test_products_are_computed_before_sums_and_each_from_left_to_right(
    steps: list[tuple[str, int]], first: int
) -> None:
    text = str(first) + "".join(f" {sign} {number}" for sign, number in steps)
    expected = value_of_chain(first, steps)
    assert FormulaReader(text).read().number(lambda name: Fraction(0)) == expected


def value_of_chain(first: int, steps: list[tuple[str, int]]) -> Fraction:
    """Return the value of a chain of operations: products first, then sums, each from left to right."""
    sums = [("+", Fraction(first))]
    for sign, number in steps:
        if sign in "+-":
            sums.append((sign, Fraction(number)))
        else:
            before, value = sums[-1]
            sums[-1] = (before, value * number if sign == "*" else value / number)
    return sum((value if sign == "+" else -value for sign, value in sums), Fraction(0))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_message(text: str) -> None:
    for parse in (
        value_types.SIZE_OR_FORMULA.parse,
        value_types.BUFFER_OR_FORMULA.parse,
        value_types.SHARE_OR_FORMULA.parse,
        value_types.TIME_OR_FORMULA.parse,
    ):
        try:
            parse(text)
        except UnitError as error:
            assert str(error)


@pytest.mark.parametrize(
    ("model", "names"),
    [(NetworkPath, {*KEYS_OF_PATH, "rtt"}), (keys.Flow, {*KEYS_OF_FLOW})],
    ids=["path", "flow"],
)
def test_formulas_may_use_the_keys_that_may_be_formulas_and_the_count_of_a_flow(
    model: type[keys.Strict], names: set[str]
) -> None:
    varied = {name for name, key in keys_of(model).items() if key.varies and key.type and key.type.plain}
    assert names == varied | (names & {"count"})
