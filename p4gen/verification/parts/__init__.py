"""The parts of a system as automata, and what is demanded of each."""
