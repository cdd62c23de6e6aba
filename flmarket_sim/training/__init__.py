"""Training of learned auctions."""
