"""What a search finds: results, counterexamples, confirmations."""
