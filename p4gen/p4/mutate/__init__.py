"""Programs with one small thing wrong. Start at ``mutants``."""
