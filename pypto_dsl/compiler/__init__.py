"""Floor 1: types, promotion, operations, the two IRs, passes, and targets as data; knows no backend and no runtime."""
