/**
 * Copies bytes into memory of their own. Most buffers are slices of Node's pool of 64 KiB: a kept slice retains the
 * whole pool, and if it is sent to another thread, the whole pool is copied.
 */
export function ownBytes(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}
