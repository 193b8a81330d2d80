import { type BinaryNode, jidDecode } from 'baileys'

/** Attributes whose values are words of the protocol. */
const PROTOCOL_ATTRIBUTES: ReadonlySet<string> = new Set([
  'addressing_mode',
  'category',
  'class',
  'decrypt-fail',
  'edit',
  'error',
  'mediatype',
  'reason',
  'type',
  'v',
])
const PROTOCOL_WORD = /^[a-z0-9_.:-]{0,24}$/
/** Protocol codes have fewer digits. This many could be a phone number. */
const MANY_DIGITS = /\d{4}/

const ADDRESS_KINDS: Readonly<Record<string, string>> = {
  's.whatsapp.net': 'number',
  lid: 'LID',
  'g.us': 'group',
  broadcast: 'broadcast',
}

/** Describes a stanza without private data: its attributes by kind, and its children. */
export function shapeOf({ tag, attrs, content }: BinaryNode): string {
  const attributes = Object.keys(attrs)
    .sort()
    .map(name => `${name}=${valueShape(name, attrs[name] ?? '')}`)
  const children = Array.isArray(content) ? [...new Set(content.map(shapeOf))].sort().join(' ') : ''
  return `<${[tag, ...attributes].join(' ')}>${children && `{${children}}`}`
}

/** The kind of an address: by number or by LID, of a device or of the account. */
export function addressKind(jid: string | undefined): string {
  const decoded = jid === undefined ? undefined : jidDecode(jid)
  if (!decoded) return 'none'
  const kind = ADDRESS_KINDS[decoded.server] ?? 'other'
  return decoded.device ? `${kind}:device` : kind
}

function valueShape(name: string, value: string): string {
  if (PROTOCOL_ATTRIBUTES.has(name) && PROTOCOL_WORD.test(value) && !MANY_DIGITS.test(value)) return value || '""'
  if (value.includes('@')) return addressKind(value)
  return /^\d+$/.test(value) ? '(number)' : '(text)'
}
