"""One file per format of logs; each adds its declaration to ``LOG_FORMATS``."""
