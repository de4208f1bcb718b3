"""Makes the modules of this folder, and the graphs of the passes' tests, importable by name, whatever the import mode."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "passes")]
