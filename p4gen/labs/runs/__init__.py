"""What runs in a lab: calls, scenarios, suites, measurements, and reports of them."""
