"""Storms: random jobs and random faults from one seed, then calm, and then all has to be well.

``schedule`` says what happens when, ``blowing`` does it, ``shrinking`` looks for the shortest
schedule that still fails.
"""
