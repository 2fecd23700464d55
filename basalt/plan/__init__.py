"""What changes from one environment, the base, to another, the head. Pure: two indexes in, values out."""
