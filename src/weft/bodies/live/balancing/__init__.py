"""How do sites balance live? A balancer at each site of a tree, and a desk that moves what they agree upon."""
