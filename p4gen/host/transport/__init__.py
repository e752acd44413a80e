"""The RNIC: queue pairs of the reliable connection service, their loss recovery and congestion control, frames."""
