"""What computes translations: a model on a device, with torch or CTranslate2."""
