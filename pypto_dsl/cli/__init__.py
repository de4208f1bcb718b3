"""`ptc`, the command line: one module per command, click imported only here."""
from __future__ import annotations

from pypto_dsl.cli.root import main

__all__ = ["main"]
