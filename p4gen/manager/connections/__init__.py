"""Connections between hosts: their registration, their paths, and the handshakes that set them up."""
