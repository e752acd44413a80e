"""What a run shows of its packets: ladders and captures."""
