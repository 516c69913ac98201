"""A study of the smallest kind: it has models here write a word about each number."""
