"""Source spans: where in the user's text an operation, buffer or error comes from."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class Span:
    """A range of one source file; lines and columns start at 1, ``end_column`` is exclusive."""

    file: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0

    @property
    def basename(self) -> str:
        """The file's last path component: what emitted text names, so that its bytes do not depend on the folder."""
        return PurePath(self.file).name

    def __str__(self) -> str:
        return f"{self.basename}:{self.line}:{self.column}"
