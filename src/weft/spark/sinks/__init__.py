"""Where do results end up, and whose are they?"""
