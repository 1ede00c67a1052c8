"""What do measurements say about operators?"""
