"""Exact decimal numbers, as JSON spells them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

DIGITS_MAX = 15
"""The most digits of a number that rules compare: what every reader of JSON keeps exactly."""


@dataclass(frozen=True)
class Decimal:
    """An exact number of at most :data:`DIGITS_MAX` digits."""

    mantissa: int
    scale: int = 0
    """Digits behind the point; no trailing zero."""

    @cached_property
    def scaled(self) -> int:
        """The number times 10 to the 15th."""
        return int(self.mantissa * 10 ** (DIGITS_MAX - self.scale))

    def with_fraction(self) -> str:
        """Its spelling with a fraction, ``.0`` if there is none."""
        return str(self) if self.scale else f"{self}.0"

    def __str__(self) -> str:
        if not self.scale:
            return str(self.mantissa)
        whole, rest = divmod(abs(self.mantissa), 10**self.scale)
        return f"{'-' if self.mantissa < 0 else ''}{whole}.{rest:0{self.scale}}"


@dataclass(frozen=True)
class Spelled:
    """A number by its spelling, which decides its type."""

    exact: Decimal | None
    """The number; ``None`` if readers may differ on it: an exponent, too many digits, a negative zero."""
    is_fraction: bool = False


def _is_digits(text: str) -> bool:
    return text == "" or (text.isascii() and text.isdigit())


def spelled(raw: str) -> Spelled:
    """Reads a number. What is no number is one on which readers differ."""
    digits = raw.removeprefix("-")
    whole, point, fraction = digits.partition(".")
    if not whole or (len(whole) > 1 and whole[0] == "0") or not _is_digits(whole) or not _is_digits(fraction) or (point and not fraction):
        return Spelled(None)
    if len((whole + fraction).lstrip("0")) > DIGITS_MAX or len(fraction) > DIGITS_MAX:
        return Spelled(None)
    mantissa, scale = int(whole + fraction), len(fraction)
    if raw[0] == "-":
        if mantissa == 0:
            return Spelled(None)
        mantissa = -mantissa
    while scale and mantissa % 10 == 0:
        mantissa, scale = mantissa // 10, scale - 1
    return Spelled(Decimal(mantissa, scale), bool(point))
