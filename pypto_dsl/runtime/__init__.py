"""Floor 3: runs things, on the CPU and in the emulators."""
