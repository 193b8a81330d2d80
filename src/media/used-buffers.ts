const MIB = 1_048_576
/** How many bytes of files a thread passes on between two garbage collections. Each byte was in up to six buffers. */
const COLLECT_EVERY_BYTES = MIB

let passed = 0

/**
 * Counts bytes of files that this thread reads or writes, and collects young objects now and then. The bytes of a file pass
 * through many buffers that are used once. They are outside V8's heap: V8 lets more than 50 MB of them pile up in each thread.
 */
export function countBuffers(bytes: number): void {
  passed += bytes
  if (passed < COLLECT_EVERY_BYTES) return
  passed = 0
  // A function in programs that `bin/pombal.js` has started with `--expose-gc`.
  globalThis.gc?.({ type: 'minor' })
}
