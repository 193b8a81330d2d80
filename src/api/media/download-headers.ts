import type { ByteRange } from '../../domain/media.ts'

const FALLBACK_NAME = 'file'

export function etagOf(sha256: Uint8Array): string {
  return `"${Buffer.from(sha256).toString('base64url')}"`
}

/** Whether `If-None-Match` contains the tag (RFC 9110, section 13.1.2). */
export function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  const tags = header.split(',').map(tag => tag.trim().replace(/^W\//, ''))
  return tags.includes(etag) || tags.includes('*')
}

/** `Range` (RFC 9110, section 14.2). Null: the whole file, even if the header is invalid or names several ranges. */
export function parseRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | null {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? '') ?? []
  if (first === '' && last === '') return null
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { from: size - length, to: size - 1 }
  }
  if (last !== '' && Number(last) < Number(first)) return null
  if (Number(first) >= size) return 'unsatisfiable'
  return { from: Number(first), to: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}

/** `Content-Disposition` (RFC 6266): an ASCII name for old clients, and the exact one (RFC 8187). */
export function attachmentHeader(filename: string | null): string {
  const name = filename ?? FALLBACK_NAME
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_')
  const exact = encodeURIComponent(name).replaceAll(/['()*]/g, c => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${exact}`
}
