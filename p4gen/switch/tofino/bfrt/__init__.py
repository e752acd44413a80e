"""BF-Runtime, the control plane of bf_switchd: its description of tables, its messages, and a client."""
