"""Paths and URLs below a root, compared by segments and by spelling: nothing is normalised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from . import spelling
from .fit import Fit

ABSOLUTE_ROOT_SEGMENTS_MIN = 2
"""The fewest segments of an absolute root."""
ROOT_SEGMENTS_MAX = 32
"""The most segments of a root."""
QUERY_MEMBERS_MAX = 16
"""The most members of a query."""
_SIGNS = frozenset("\\~$%:*?\"'`;|&<>{}[]!#^")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9])", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9._-]+")
_QUERY_VALUE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ORIGIN = r"(?P<origin>[a-z][a-z0-9]*://{0}(?:\.{0})*(?::[1-9][0-9]{{0,4}})?)".format("[a-z0-9][a-z0-9-]*")
_URL = re.compile(_ORIGIN + r"(?P<path>/[^?]*)?(?:\?(?P<query>.*))?", re.DOTALL)


class PlaceError(ValueError):
    """A text, or parts, that are no root."""


def _fit_below(root: Sequence[str], path: Sequence[str]) -> Fit | None:
    """Fit of a path to the condition to lie below a root; ``None`` if it is of another folder."""
    if any(own != other for own, other in zip(root, path)):
        return None
    below = path[len(root) :]
    return Fit.UNCLEAR if not below or any(segment.startswith(".") for segment in below) else Fit.HELD


@dataclass(frozen=True)
class PathRoot:
    """A directory: all paths with its segments and at least one more lie under it, but for those with a hidden name below it."""

    is_absolute: bool
    segments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> PathRoot:
        """Reads a root, such as ``/srv/docs`` or ``notes``.

        Raises:
            PlaceError: the fault.
        """
        root = _plain_path(text)
        if root is None:
            raise PlaceError("a path is written without `.` and `..`, empty segments, hidden characters and signs of shells")
        if root.is_absolute and len(root.segments) < ABSOLUTE_ROOT_SEGMENTS_MIN:
            raise PlaceError(f"an absolute root has at least {ABSOLUTE_ROOT_SEGMENTS_MIN} segments, as in `/srv/docs`")
        if len(root.segments) > ROOT_SEGMENTS_MAX:
            raise PlaceError(f"a root has at most {ROOT_SEGMENTS_MAX} segments")
        return root

    def fit(self, text: str) -> Fit:
        """Fit of a text to the condition to lie under this root."""
        path = _plain_path(text)
        if path is None or path.is_absolute != self.is_absolute:
            return Fit.UNCLEAR
        fit = _fit_below(self.segments, path.segments)
        if fit is None:
            alike = all(spelling.are_like(own, other) for own, other in zip(self.segments, path.segments))
            fit = Fit.UNCLEAR if alike else Fit.FAILED
        return fit

    def __str__(self) -> str:
        return ("/" if self.is_absolute else "") + "/".join(self.segments)


def _plain_path(text: str) -> PathRoot | None:
    """A path that every reader reads alike."""
    is_absolute = text.startswith("/")
    rest = text[1:] if is_absolute else text
    if not is_absolute and rest.startswith(("-", "@")):
        return None
    segments = tuple(rest.split("/"))
    return PathRoot(is_absolute, segments) if all(map(_is_plain_segment, segments)) else None


def _is_plain_segment(segment: str) -> bool:
    return (
        segment != ""
        and not segment.endswith(".")
        and " -" not in segment
        and segment == segment.strip(spelling.WHITE)
        and _SIGNS.isdisjoint(segment)
        and all(" " <= one <= "~" or (not one.isascii() and one.isalnum()) for one in segment)
        and spelling.oddity(segment) is None
        and spelling.is_sure(segment)
        and not spelling.is_compatibility_form(segment)
        and not _DEVICE.fullmatch(segment.split(".")[0].rstrip().lower())
    )


@dataclass(frozen=True)
class UrlRoot:
    """The URLs of one origin whose path has certain segments and at least one more, and whose query has exactly certain members."""

    origin: str
    segments: tuple[str, ...]
    query: tuple[str, ...]

    @classmethod
    def make(cls, origin: str, path: str, query: Sequence[str]) -> UrlRoot:
        """Makes a root of its parts.

        Raises:
            PlaceError: the part that is wrong.
        """
        read = _plain_url(origin)
        if read is None or read.origin != origin:
            raise PlaceError("an origin is a scheme, a host and perhaps a port in lower-case ASCII, as in `https://api.example.com`")
        segments = _path_segments(path)
        if segments is None:
            raise PlaceError("a path of a URL begins with `/`, and has letters, digits, `.`, `_` and `-` in its segments")
        names = tuple(sorted(query))
        if len(set(names)) < len(names) or len(names) > QUERY_MEMBERS_MAX or not all(map(_WORD.fullmatch, names)):
            raise PlaceError(f"a query has at most {QUERY_MEMBERS_MAX} different names of letters, digits, `.`, `_` and `-`")
        return cls(origin, segments, names)

    def fit(self, url: str) -> Fit:
        """Fit of a text to the condition to be a URL of this root."""
        read = _plain_url(url)
        if read is None:
            return Fit.UNCLEAR
        below = _fit_below(self.segments, read.segments) if read.origin == self.origin else None
        if below is None:
            return Fit.FAILED
        return max(below, Fit.UNCLEAR) if self.query != read.query else below

    @property
    def path(self) -> str:
        """The path, which begins with a slash."""
        return "/" + "/".join(self.segments)

    def __str__(self) -> str:
        return self.origin + self.path


def _plain_url(url: str) -> UrlRoot | None:
    """A URL that every reader reads alike."""
    found = _URL.fullmatch(url)
    if found is None:
        return None
    segments = _path_segments(found["path"] or "/")
    members = [] if found["query"] is None else [member.partition("=") for member in found["query"].split("&")]
    if any(not (between and _WORD.fullmatch(name) and _QUERY_VALUE.fullmatch(value)) for name, between, value in members):
        return None
    names = tuple(sorted(name for name, _, _ in members))
    if segments is None or len(set(names)) < len(names):
        return None
    return UrlRoot(found["origin"], segments, names)


def _path_segments(path: str) -> tuple[str, ...] | None:
    if not path.startswith("/"):
        return None
    segments = tuple(path[1:].split("/")) if path != "/" else ()
    plain = all(_WORD.fullmatch(segment) and not segment.endswith(".") for segment in segments)
    return segments if plain else None
