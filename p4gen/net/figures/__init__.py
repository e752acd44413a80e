"""Figures and studies of papers: what is simulated, kept and drawn."""
