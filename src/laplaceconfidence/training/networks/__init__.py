"""Networks in plain torch; how any other network is found and checked; and penultimate features."""
