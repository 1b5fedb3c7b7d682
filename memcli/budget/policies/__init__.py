"""One file per policy: who decides what stays in the window, what is flushed and what is put before it."""
