"""What the users send: when, and how many tokens in and out."""
