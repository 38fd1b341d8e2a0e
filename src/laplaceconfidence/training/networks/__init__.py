"""Networks in plain torch, and how any other network is found, checked and listened to."""
