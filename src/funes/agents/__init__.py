"""Registering funes with the agents on this machine, and taking it back.

One module for each agent knows what that agent reads; `install` does what is the same for all of them: looking at the
files before and after, undoing what was half done, and keeping the receipt by which `funes remove` puts them back.
"""
