"""Figures and studies of papers: the simulations, their kept outcomes, and drawings."""
