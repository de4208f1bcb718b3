"""Makes the modules of this folder, and the tables of the operations' tests, importable by name."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "ops")]
