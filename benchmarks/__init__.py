"""Side-by-side measurements of pypto_dsl and other array libraries on the CPU: see README.md in this folder."""
