import { createHash } from 'node:crypto'

const PREFIX = '/v/t62.7118-24/'
const SUFFIX = '.enc'
const SIGNATURE_LENGTH = 32

/** The path to download a file from. As on WhatsApp, the query string is a part of it and contains the signature. */
export function directPathOf(id: string): string {
  return `${PREFIX}${id}${SUFFIX}?ccb=11-4&oh=${signatureOf(id)}&_nc_sid=5e03e0`
}

/** The file that a direct path names; null if it names none. */
export function fileIdIn(directPath: string): { id: string; isSigned: boolean } | null {
  const url = URL.parse(directPath, 'https://localhost')
  if (!url?.pathname.startsWith(PREFIX) || !url.pathname.endsWith(SUFFIX)) return null
  const id = url.pathname.slice(PREFIX.length, -SUFFIX.length)
  return { id, isSigned: url.searchParams.get('oh') === signatureOf(id) }
}

function signatureOf(id: string): string {
  return createHash('sha256').update(`direct path of ${id}`).digest('hex').slice(0, SIGNATURE_LENGTH)
}
