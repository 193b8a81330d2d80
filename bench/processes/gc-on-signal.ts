/** Loaded into a process before its program (`--import`, with `--expose-gc`). It collects garbage on SIGUSR2. */
process.on('SIGUSR2', () => globalThis.gc?.())
