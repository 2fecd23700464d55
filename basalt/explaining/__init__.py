"""What `basalt explain ENV ...` tells: where an object came from, and what a group of people reaches."""
