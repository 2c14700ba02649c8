"""ctypes, raw system calls and process kills; nowhere else."""
