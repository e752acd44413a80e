"""Compiled networks (``p4gen.compiled``) as Python sees them: links and switches beside ``p4gen.host.compiled``."""
