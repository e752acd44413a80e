"""Valid P4 that BMv2 does not support."""
