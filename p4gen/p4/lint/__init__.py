"""Judgements on programs that are correct P4: what a target cannot do, the rules of the house, reads before writes."""
