"""Makes the helper modules of this folder importable by name, whatever the import mode."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
