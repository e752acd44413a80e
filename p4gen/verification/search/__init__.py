"""The search through all states: kernel, workers, sets of states, symmetries."""
