export const MEDIA_TYPES = ['image', 'video', 'audio', 'voice', 'document', 'sticker'] as const
export type MediaType = (typeof MEDIA_TYPES)[number]

/** The properties of a media message that a person sees. */
export interface MediaDescription {
  type: MediaType
  mimetype: string
  caption?: string
  filename?: string
  seconds?: number
  width?: number
  height?: number
  /** A small JPEG, in Base64. */
  thumbnail?: string
}

/** A media file on a simulated phone, after the phone has downloaded and decrypted it. */
export interface ReceivedMedia extends MediaDescription {
  /** The size of the decrypted file in bytes. With a `problem`, the size that the message states. */
  size: number
  /** The hash of the decrypted file in hexadecimal. With a `problem`, the hash that the message states. */
  sha256: string
  /** `missing`: the media host has no such file. `altered`: its bytes, hashes, length or authentication code differ. */
  problem?: 'missing' | 'altered'
}

/** A file that a contact sends. */
export interface ContactMedia extends Partial<MediaDescription> {
  type: MediaType
  /** The content. Exactly one of `bytes`, `path` and `size` is required. */
  bytes?: Uint8Array
  /** A file with the content, which is read in pieces. */
  path?: string
  /** Random content of this many bytes. `inbox` of the account shows its SHA-256. */
  size?: number
}
