"""Benchmarks: the speed of a generated program on the interpreter, the native engine and BMv2, and of a loop in C."""
