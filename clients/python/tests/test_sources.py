"""What holds for all sources of the package, its examples and its tests."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).parents[1]


def test_every_text_file_is_read_and_written_in_a_named_encoding() -> None:
    named, unnamed = 0, []
    for path in sorted(FOLDER.glob("*/**/*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in ("read_text", "write_text", "open"):
                continue
            if any(keyword.arg == "encoding" for keyword in node.keywords):
                named += 1
            else:
                unnamed.append(f"{path.relative_to(FOLDER)}:{node.lineno}")
    assert unnamed == [] and named > 3
