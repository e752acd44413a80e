"""Hosts of labs that are virtual machines with Linux Soft-RoCE: images of them, and how they are run.

``images`` names and builds what a virtual machine boots from; ``layer`` is p4gen itself for its Python; ``guest`` is
one virtual machine; ``proxy`` is the process beside it in the host's namespace; ``inside`` is p4gen within.
"""
