"""What will come, and what should leave before it does?"""
