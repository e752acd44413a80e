"""Views of a run's packets: ladders and captures."""
