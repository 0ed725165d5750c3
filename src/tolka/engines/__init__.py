"""Engines that compute translations: a model on a device, with torch or CTranslate2."""
