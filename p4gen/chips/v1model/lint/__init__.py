"""What BMv2 does not support of valid P4."""
