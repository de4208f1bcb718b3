"""Makes the modules of this folder importable by name, and keeps compiled objects out of the user's cache."""
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ["PTC_CACHE_DIR"] = tempfile.mkdtemp(prefix="pypto_dsl_objects")
