"""The processes that train one model together: thin, over torch.distributed and torchrun."""
