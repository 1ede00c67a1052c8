"""What does a fragment go on from, and is it whole?"""
