"""The TT-Metal emulator: vendor header names over a Tensix core that traps what the hardware would punish."""
