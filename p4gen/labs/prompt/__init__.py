"""The prompt of a lab and its commands."""
