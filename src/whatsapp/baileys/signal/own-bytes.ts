/**
 * Copies bytes that are kept for long into their own memory. Most buffers are slices of Node's pool, and even a small slice
 * retains all 64 KiB of it.
 */
export function ownBytes(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}
