"""The parts of a system as automata, and the monitors that check each."""
