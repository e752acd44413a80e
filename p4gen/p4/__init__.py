"""The P4_16 front end: text to typed IR, P4Info, and the house's lint. Start at ``compile``."""
