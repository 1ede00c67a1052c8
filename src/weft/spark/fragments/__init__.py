"""How does a fragment run? From operators to one streaming query, batch by batch."""
