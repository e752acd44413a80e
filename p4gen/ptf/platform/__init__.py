"""Platform plug-ins for PTF: each module here can be named with ``--platform``."""
