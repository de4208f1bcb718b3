"""Strict host emulators of the device vendors' kernel APIs, and the runners that execute emitted files on them."""
