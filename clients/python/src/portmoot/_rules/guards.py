"""Guards of a rule: what it counts and asks of time and of earlier calls."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .decimals import Decimal
from .pointer import Pointer
from .spelling import named
from .window import UNITS_MS, Window

USES_MAX = 10_000
"""The most uses of a rule."""
GUARDS_MAX = 4
"""The most guards of each sort."""
SAME_MEMBERS_MAX = 8
"""The most members that an earlier call must share."""
_RATE = re.compile("([1-9][0-9]{0,4})/([mhd])")


class RateError(ValueError):
    """A text that is no rate."""


@dataclass(frozen=True)
class RateGuard:
    """The most calls in a minute, an hour or a day."""

    max: int
    within: Window

    @classmethod
    def parse(cls, text: str) -> RateGuard:
        """Reads a rate, such as ``12/h``.

        Raises:
            RateError: it is none.
        """
        found = _RATE.fullmatch(text)
        if found is None or int(found[1]) > USES_MAX:
            raise RateError("a rate is a number of calls in a minute, an hour or a day, as in `12/h`")
        return cls(int(found[1]), Window(UNITS_MS[found[2]]))

    def words(self) -> str:
        return f"at most {self.max} calls {self.within.words()}"

    def __str__(self) -> str:
        return f"{self.max}/{self.within.unit}"


@dataclass(frozen=True)
class SumGuard:
    """A bound of the sum of a member over the calls of a window, the one that is judged included."""

    of: Pointer
    max: Decimal
    within: Window

    def words(self) -> str:
        return f"the sum of {self.of.words()} over {self.within.words()} is at most {self.max}"


@dataclass(frozen=True)
class CountGuard:
    """A bound of the calls of a window in which a member has the same value, the one that is judged included."""

    same: Pointer
    max: int
    within: Window

    def words(self) -> str:
        return f"at most {self.max} calls of the same {self.same.words()} over {self.within.words()}"


@dataclass(frozen=True)
class AfterGuard:
    """A call that the same proposer must have made before, and that was answered without an error."""

    method: str
    target: str
    to: str
    same: tuple[tuple[Pointer, Pointer], ...]
    """Members of the judged call, each with the member of the earlier call that had the same value."""
    within: Window

    def words(self) -> str:
        same = [
            f"the same {here.words()}" if here == there else f"its {there.words()} as {here.words()}" for here, there in self.same
        ]
        having = f" with {' and '.join(same)}" if same else ""
        return f"{named(self.target)} of {named(self.to)}{having} was answered to the proposer within {self.within.words()}"


@dataclass(frozen=True)
class Guards:
    """The guards of a rule. An approving rule acts while all of them hold; one that rejects or asks acts once one of them is broken,
    or always if it has none."""

    rate: RateGuard | None = None
    sums: tuple[SumGuard, ...] = ()
    counts: tuple[CountGuard, ...] = ()
    after: tuple[AfterGuard, ...] = ()

    def all(self) -> list[RateGuard | SumGuard | CountGuard | AfterGuard]:
        """All of them, in the order in which they are checked."""
        rate = [] if self.rate is None else [self.rate]
        return [*rate, *self.sums, *self.counts, *self.after]

    def longest_ms(self) -> int:
        """The longest window in which calls are counted; 0 without such a guard."""
        counted = [guard for guard in self.all() if not isinstance(guard, AfterGuard)]
        return max((guard.within.ms for guard in counted), default=0)
