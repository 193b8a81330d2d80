/** Loaded into a process before its program (`--import`, with `--expose-gc`): it collects its garbage when told to. */
process.on('SIGUSR2', () => globalThis.gc?.())
