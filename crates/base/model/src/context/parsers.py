"""Reads `[PREFIX, URI]` pairs as JSON; prints, for each, whether Python's parsers end outside of the prefix."""
import json
import posixpath
import sys
import unicodedata
from urllib.parse import unquote, urljoin, urlsplit


def visible(text):
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Zl", "Zp")).strip()


def readings(uri):
    for way in (uri, uri.strip(), urljoin("file:///elsewhere/", uri)):
        try:
            parts = urlsplit(way)
        except ValueError:
            continue
        text = parts.path
        for _ in range(3):
            for form in (text, visible(text), unicodedata.normalize("NFKC", visible(text))):
                for path in (form, form.replace("\\", "/")):
                    yield f"{parts.scheme}://{parts.netloc}", posixpath.normpath(path)
            text = unquote(text)


def outside(prefix, uri):
    origin, path = next(readings(prefix))
    below = path + "/" if prefix.endswith("/") else path
    return any(o != origin or not (p + "/").startswith(below) for o, p in readings(uri))


print(json.dumps([outside(prefix, uri) for prefix, uri in json.load(sys.stdin)]))
