"""Layouts as data: words of state and headers, each declared once."""

from p4gen.layout.datagram import Datagram, Datagrams
from p4gen.layout.header import Header, HeaderField, Stack
from p4gen.layout.word import Field, Word

__all__ = ["Datagram", "Datagrams", "Field", "Header", "HeaderField", "Stack", "Word"]
