/** What to remove from an encoded message, by the number of the field: the whole field, or parts of it. */
interface Removal {
  readonly [field: number]: 'all' | Removal
}

/** `contextInfo` of a text or file. Of it: `stanzaId`, `participant` and `quotedMessage`. */
const QUOTE: Removal = { 17: { 1: 'all', 2: 'all', 3: 'all' } }
/** The texts and files of WhatsApp's `Message` (WAProto of Baileys), and a document with a caption, which is wrapped. */
const OF_MESSAGE: Removal = { 3: QUOTE, 6: QUOTE, 7: QUOTE, 8: QUOTE, 9: QUOTE, 26: QUOTE, 53: { 1: { 7: QUOTE } } }

/**
 * The content of a sent message without the message that it quotes. The rest stays as it was sent. Baileys, which encoded
 * it, is loaded only where WhatsApp's connections are.
 */
export function withoutQuote(content: Uint8Array): Uint8Array {
  return remove(content, OF_MESSAGE)
}

/** The wire types of protocol buffers. */
const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

function remove(message: Uint8Array, removal: Removal): Uint8Array {
  const kept: Uint8Array[] = []
  for (let at = 0; at < message.length; ) {
    const tag = readVarint(message, at)
    const value = readVarint(message, tag.end)
    const [field, wire] = [Math.floor(tag.value / 8), tag.value % 8]
    const end = endOf(wire, tag.end, value)
    const what = wire === WIRE.bytes ? removal[field] : undefined
    if (what === undefined) kept.push(message.subarray(at, end))
    else if (what !== 'all') {
      const rest = remove(message.subarray(value.end, end), what)
      kept.push(message.subarray(at, tag.end), writeVarint(rest.length), rest)
    }
    at = end
  }
  return Buffer.concat(kept)
}

/** @param value the number after the tag: the value of the field, or the length of its bytes */
function endOf(wire: number, start: number, value: Varint): number {
  if (wire === WIRE.varint) return value.end
  if (wire === WIRE.bytes) return value.end + value.value
  if (wire === WIRE.fixed64) return start + 8
  if (wire === WIRE.fixed32) return start + 4
  throw new Error(`A stored message has a field of the unknown wire type ${wire}.`)
}

interface Varint {
  value: number
  end: number
}

function readVarint(bytes: Uint8Array, start: number): Varint {
  let value = 0
  let at = start
  for (let factor = 1; ; factor *= 128) {
    const byte = bytes[at++] ?? 0
    value += (byte % 128) * factor
    if (byte < 128) return { value, end: at }
  }
}

function writeVarint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Uint8Array.from([...bytes, rest])
}
