"""Recipes: whole jobs made of searches and fits. Nothing here sees a row or a formula; each file is one job."""
