/**
 * The same bytes in memory of their own, for what is kept: most buffers are slices of Node's pool, and the smallest one
 * keeps all 64 KiB of it.
 */
export function ownBytes(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}
