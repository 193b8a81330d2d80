/**
 * Copies bytes into memory of their own. Most buffers are slices of Node's pool of 64 KiB: a slice that is kept retains all of
 * it, and one that is sent to another thread is copied with all of it.
 */
export function ownBytes(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}
