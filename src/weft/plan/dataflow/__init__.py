"""How do streams hang together? Order, rates, shares and event times along the graph."""
