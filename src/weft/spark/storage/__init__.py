"""What lies on the disk, synced and private, and what in temporary space?"""
