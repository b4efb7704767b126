"""Lanckriet 2004: kernel weights by the soft margin of a support vector machine."""
