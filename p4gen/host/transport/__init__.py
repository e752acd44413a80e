"""The RNIC: queue pairs of the reliable connection service, with loss recovery, congestion control and framing."""
