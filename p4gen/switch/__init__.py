"""Switches behind one interface: embedded in this process, or in a separate process."""
