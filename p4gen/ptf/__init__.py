"""Running PTF suites against a switch process, without root."""
