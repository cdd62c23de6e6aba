"""What sellers contribute to a purchase: games of coalitions, and values for them."""
