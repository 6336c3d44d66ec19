"""Probes that need torch, and what is concluded from what they see; each runs in a process of its own.

Conclusions are pure functions over plain numbers, so that they can be tested without a GPU.
"""
