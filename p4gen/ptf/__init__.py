"""PTF suites run against a switch process, without root; seeded faults, and which scenarios catch them."""
