"""Folders of CTranslate2: what is written into them, and how they are read."""
