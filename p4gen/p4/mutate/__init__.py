"""Mutations: programs with one small fault. Start at ``mutants``."""
