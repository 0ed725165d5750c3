"""What a worker process does that is killed, as by a system without memory."""

import os
import signal


def killed(*given: object, **named: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
