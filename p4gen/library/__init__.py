"""What ``import p4gen`` offers: programs, switches, runs, searches and labs, each as one call."""
