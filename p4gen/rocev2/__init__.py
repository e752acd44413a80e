"""RoCEv2 on the wire: header layouts, opcodes, serial numbers and the ICRC."""
