"""The i.i.d. stable network, with a kernel process added for what is smooth: jumps anywhere, in any dimension."""
