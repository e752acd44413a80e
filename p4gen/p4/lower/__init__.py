"""From syntax to the typed IR, checked on the way. Start at ``program``."""
