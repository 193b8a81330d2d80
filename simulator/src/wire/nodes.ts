import { inflateSync } from 'node:zlib'
import * as dictionary from 'baileys/lib/WABinary/constants.js'
import type { BinaryNode } from 'baileys/lib/WABinary/index.js'
import { decodeDecompressedBinaryNode, encodeBinaryNode } from 'baileys/lib/WABinary/index.js'

/** A stanza, or a part of one. */
export type Node = BinaryNode
export type Attributes = Record<string, string | undefined>

export const SERVER = 's.whatsapp.net'

/** Baileys looks up words in a plain object, and would encode `constructor` as an empty word. */
const ENCODING = { ...dictionary, TOKEN_MAP: Object.assign(Object.create(null), dictionary.TOKEN_MAP) }
const COMPRESSED = 2
const MAX_STANZA_BYTES = 16 * 1024 * 1024

/** @throws Error unless the bytes are one well-formed stanza of acceptable size */
export function decodeNode(data: Buffer): Node {
  if (data.length === 0) throw new Error('empty frame')
  const body = data.subarray(1)
  const plain = data[0]! & COMPRESSED ? inflateSync(body, { maxOutputLength: MAX_STANZA_BYTES }) : body
  return decodeDecompressedBinaryNode(plain, dictionary)
}

export function encodeNode(stanza: Node): Buffer {
  return encodeBinaryNode(stanza, ENCODING)
}

/** Leaves out undefined attributes. */
export function node(tag: string, attrs: Attributes = {}, content?: Node[] | Uint8Array | string): Node {
  const defined: Record<string, string> = {}
  for (const [name, value] of Object.entries(attrs)) if (value !== undefined) defined[name] = value
  return content === undefined ? { tag, attrs: defined } : { tag, attrs: defined, content }
}

export function children(parent: Node | undefined, tag?: string): Node[] {
  const content = parent?.content
  if (!Array.isArray(content)) return []
  return tag === undefined ? content : content.filter(one => one.tag === tag)
}

export function child(parent: Node | undefined, tag: string): Node | undefined {
  return children(parent, tag)[0]
}

/** The bytes of a child, or of the node itself if no tag is given. Undefined if there are none. */
export function bytes(parent: Node | undefined, tag?: string): Buffer | undefined {
  const content = (tag === undefined ? parent : child(parent, tag))?.content
  if (typeof content === 'string') return Buffer.from(content)
  return content instanceof Uint8Array ? Buffer.from(content.buffer, content.byteOffset, content.length) : undefined
}

/** A number as node content: big endian, of a fixed width. */
export function bigEndian(value: number, width: number): Buffer {
  const encoded = Buffer.alloc(width)
  encoded.writeUIntBE(value, 0, width)
  return encoded
}

export function uint(data: Buffer | undefined): number | undefined {
  return data && data.length > 0 && data.length <= 6 ? data.readUIntBE(0, data.length) : undefined
}

/** Seconds since the epoch, in the form of attribute `t`. */
export function seconds(atMs: number): string {
  return Math.floor(atMs / 1000).toString()
}
