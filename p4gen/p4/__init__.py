"""The P4_16 front end: from text to typed IR, P4Info and lint. Start at ``compile``."""
