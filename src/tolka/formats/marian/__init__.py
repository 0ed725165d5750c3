"""Folders of Marian (Junczys-Dowmunt et al. 2018), as OPUS-MT, Firefox and translateLocally have them."""
