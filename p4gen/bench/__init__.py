"""How fast a generated program runs: on the interpreter, natively, on BMv2, and beside a loop in C."""
