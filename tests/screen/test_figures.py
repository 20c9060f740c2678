"""How figures are written."""

from servesim.screen.figures import (
    counted,
    dollars,
    money,
    number,
    percent,
    rounded_percent,
    scale_of,
    signed,
    typed,
)


def test_figures_have_three_digits_and_their_thousands_marked() -> None:
    assert [number(value) for value in (None, 0.0, 0.01234, 12.34, 999.9, 1234567.8)] == [
        *("-", "0", "0.0123", "12.3"),
        *("1,000", "1,234,568"),
    ]
    assert [signed(value) for value in (0.0, -0.01234, 1234.5)] == ["+0", "-0.0123", "+1,234"]
    assert [dollars(value) for value in (None, 0.0, 0.1234, 12.345, 12345.6, 0.01)] == [
        *("-", "$0.00", "$0.12", "$12.35", "$12,345.60", "$0.01"),
    ]
    assert [money(value) for value in (None, 12.3, 0.00123456, 0.0000123456, 1e-300)] == [
        *("-", "12.30", "0.00123", "0.0000123", "0.00"),
    ]
    assert [percent(value) for value in (None, 0.1234, 0.9999, 1.0, 0.29)] == [
        *("-", "12.3%", "99.9%", "100.0%", "29.0%"),
    ]
    shares = (None, 0.019656, 0.35789, 0.73371)
    assert [rounded_percent(share) for share in shares] == ["-", "2.0%", "35.8%", "73.4%"]
    assert [scale_of(*times_s) for times_s in ((), (None, 999.9), (1.0, 1000.0))] == [1e3, 1e3, 1.0]
    assert percent(0.9899999, 2) == "98.99%"
    assert [counted(count, "row") for count in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]
    assert [typed(value) for value in (None, True, 3, "x", [1, 2])] == ["null", "true", "3", "x", "2 rows"]
