"""What does a finished run tell?"""
