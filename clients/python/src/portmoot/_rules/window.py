"""Lengths of time windows, hours of a week, and times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WINDOW_MS_MAX = 31 * DAY_MS
"""The longest window in which a rule counts: 31 days."""
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LONG_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
UNITS_MS = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
"""The units of a window, in milliseconds."""
_WINDOW = re.compile("([1-9][0-9]{0,7})([mhd])")
_CLOCK = "([0-9]{2}):([0-9]{2})"
_HOURS = re.compile(f"([A-Za-z,-]+) {_CLOCK}-{_CLOCK} (?:UTC|([+-]){_CLOCK})")
# As for the gateway, a second is whole if its milliseconds are zero.
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]((?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])(?:\.(?:0{1,2}|000[0-9]*))?"
    r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class WindowError(ValueError):
    """A text that is no window, or no hours of a week."""


@dataclass(frozen=True)
class Window:
    """The length of a window that ends now."""

    ms: int

    @classmethod
    def parse(cls, text: str) -> Window:
        """Reads a length, such as ``30m``, ``1h`` or ``7d``.

        Raises:
            WindowError: it is none.
        """
        found = _WINDOW.fullmatch(text)
        ms = int(found[1]) * UNITS_MS[found[2]] if found else WINDOW_MS_MAX + 1
        if ms > WINDOW_MS_MAX:
            raise WindowError("a window is a number of minutes, hours or days up to 31 days, as in `30m`, `1h` or `7d`")
        return cls(ms)

    def has(self, at_ms: int, now_ms: int) -> bool:
        """Whether a time lies in the window that ends at ``now_ms``. Times after it do, too."""
        return now_ms - at_ms < self.ms

    def _parts(self) -> tuple[int, str]:
        unit = next(unit for unit in "dhm" if self.ms % UNITS_MS[unit] == 0)
        return self.ms // UNITS_MS[unit], unit

    @property
    def unit(self) -> str:
        """The largest unit of which it is a multiple."""
        return self._parts()[1]

    def words(self) -> str:
        """The length in words: ``an hour``, ``7 days``."""
        count, unit = self._parts()
        if count == 1:
            return {"d": "a day", "h": "an hour", "m": "a minute"}[unit]
        return f"{count} {({'d': 'days', 'h': 'hours', 'm': 'minutes'})[unit]}"

    def __str__(self) -> str:
        count, unit = self._parts()
        return f"{count}{unit}"


@dataclass(frozen=True)
class WeekHours:
    """Hours of some days of the week, at a fixed offset from UTC."""

    days: frozenset[int]
    """Monday is 0."""
    begin: int
    """Minutes from midnight."""
    end: int
    """Minutes from midnight; not in the span."""
    offset: int

    @classmethod
    def parse(cls, text: str) -> WeekHours:
        """Reads hours, such as ``Mon-Fri 06:00-18:00 UTC``.

        Raises:
            WindowError: they are none.
        """
        found = _HOURS.fullmatch(text)
        days = _days_of(found[1]) if found else None
        begin, end = (_minutes(found[2], found[3]), _minutes(found[4], found[5])) if found else (None, None)
        offset: int | None = 0
        if found and found[6]:
            offset = _minutes(found[7], found[8])
            offset = None if not offset or offset > 14 * 60 else int(found[6] + "1") * offset
        if days is None or begin is None or end is None or offset is None or begin >= end:
            raise WindowError(
                "hours of a week are days, a span and an offset, as in `Mon-Fri 06:00-18:00 UTC` or `Sat,Sun 10:00-24:00 +02:00`"
            )
        return cls(days, begin, end, offset)

    def has(self, at_ms: int) -> bool:
        """Whether a time lies in these hours."""
        day, minute = divmod(at_ms // MINUTE_MS + self.offset, 24 * 60)
        # The first of January 1970 was a Thursday.
        return (day + 3) % 7 in self.days and self.begin <= minute < self.end

    def __str__(self) -> str:
        runs = "".join(str(day) if day in self.days else " " for day in range(7)).split()
        names = [[_DAYS[int(day)] for day in run] for run in runs]
        days = ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(run) for run in names)
        sign = "-" if self.offset < 0 else "+"
        offset = f"{sign}{_clock(abs(self.offset))}" if self.offset else "UTC"
        return f"{days} {_clock(self.begin)}-{_clock(self.end)} {offset}"

    def words(self) -> str:
        """The hours in words."""
        return f"only {self}"


def _days_of(text: str) -> frozenset[int] | None:
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if part.count("-") > 1 or first not in _DAYS or (last or first) not in _DAYS or part.endswith("-"):
            return None
        run = range(_DAYS.index(first), _DAYS.index(last or first) + 1)
        if not run:
            return None
        days.update(run)
    return frozenset(days)


def _minutes(hours: str, minutes: str) -> int | None:
    all_minutes = int(hours) * 60 + int(minutes)
    return all_minutes if int(minutes) < 60 and all_minutes <= 24 * 60 else None


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def read_time(text: str) -> int | None:
    """A time with an offset in whole seconds, in milliseconds since 1970."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00")
    except ValueError:
        return None
    seconds = (at - _EPOCH) // timedelta(seconds=1)
    if found[3]:
        seconds -= int(found[3] + "1") * (int(found[4]) * 3600 + int(found[5]) * 60)
    return seconds * 1000 if seconds >= 0 else None


def _at(at_ms: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return None


def time(at_ms: int) -> str:
    """A time as RFC 3339 in UTC, with whole seconds."""
    at = _at(at_ms)
    return "" if at is None else f"{at.year:04}-{at:%m-%dT%H:%M:%SZ}"


def day_and_time(at_ms: int) -> str:
    """A time as people read it."""
    at = _at(at_ms)
    return "" if at is None else f"{_LONG_DAYS[at.weekday()]} {at.day} {_MONTHS[at.month - 1]} {at.year} {at:%H:%M:%S} UTC"
