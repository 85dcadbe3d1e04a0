"""Result of one check: held, unclear, or failed."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Fit(IntEnum):
    """Fit of a value, or of a whole call, to a condition."""

    HELD = 0
    """It satisfies the condition as it is spelled."""
    UNCLEAR = 1
    """It could satisfy the condition for a reader that normalises, converts or guesses. An approving rule takes this as failed, one
    that rejects or asks takes it as held."""
    FAILED = 2
    """It does not satisfy the condition in any reading."""

    @property
    def word(self) -> str:
        """The word for it in an explanation."""
        return self.name.lower()


def fit_of(held: bool) -> Fit:
    """Held or failed."""
    return Fit.HELD if held else Fit.FAILED


def all_of(fits: Iterable[Fit]) -> Fit:
    """The fit of a whole of which all parts must fit."""
    return max(fits, default=Fit.HELD)


def one_of(fits: Iterable[Fit]) -> Fit:
    """The fit of a whole of which one part must fit."""
    return min(fits, default=Fit.FAILED)
