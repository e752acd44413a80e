"""The findings of a search: results, counterexamples, confirmations."""
