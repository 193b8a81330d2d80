const MIB = 1_048_576
const MAX_IMAGE_BYTES = 16 * MIB
const MAX_AUDIO_OR_VIDEO_BYTES = 64 * MIB

/** The largest file of any type. */
export const MAX_MEDIA_BYTES = 100 * MIB

export const MAX_FILENAME_LENGTH = 255

/** The type of a file that no other type describes. */
export const UNKNOWN_TYPE = 'application/octet-stream'

/** How WhatsApp shows a file. */
export const MEDIA_FORMS = ['image', 'video', 'audio', 'voice', 'document', 'sticker'] as const
export type MediaForm = (typeof MEDIA_FORMS)[number]

const FORMS: Readonly<Record<MediaForm, RegExp>> = {
  image: /^image\/(jpeg|png)$/,
  video: /^video\/(mp4|3gpp)$/,
  audio: /^audio\//,
  // WhatsApp plays no other voice notes.
  voice: /^audio\/ogg; codecs=opus$/,
  sticker: /^image\/webp$/,
  document: /./,
}

/** Whether WhatsApp shows files of this type in this form. Every file can be a document. */
function canBeShownAs(mimetype: string, form: MediaForm): boolean {
  return FORMS[form].test(mimetype)
}

/** Whether WhatsApp shows a caption with a file in this form. */
export function hasCaption(form: MediaForm): boolean {
  return form === 'image' || form === 'video' || form === 'document'
}

/** The form of a file of this type if the caller does not choose one. */
function defaultForm(mimetype: string): MediaForm {
  return (['image', 'video', 'audio'] as const).find(form => canBeShownAs(mimetype, form)) ?? 'document'
}

/**
 * How a file of this type is shown. A voice note that WhatsApp would not play becomes audio. Null if WhatsApp does not
 * show the file in the requested form.
 * @param asked null: the type decides
 */
export function formOf(mimetype: string, asked: MediaForm | null): MediaForm | null {
  const form = asked ?? defaultForm(mimetype)
  if (canBeShownAs(mimetype, form)) return form
  return form === 'voice' && canBeShownAs(mimetype, 'audio') ? 'audio' : null
}

/** The part of a picture that WhatsApp shows before it is downloaded. */
export interface Picture {
  /** Pixels, as it is shown. */
  width: number
  height: number
  isAnimated: boolean
  /** A small JPEG. */
  thumbnail: Uint8Array
}

/** Whether a thumbnail of a file of this type is made. */
export function showsPicture(mimetype: string): boolean {
  return /^image\/(jpeg|png|webp|gif)$/.test(mimetype)
}

/** Why a file that somebody sent to the instance could not be stored. */
export const RECEIVING_FAILURES = {
  media_unavailable:
    'WhatsApp no longer has the file and the phone did not upload it again, or the message states too little about it.',
  media_damaged: 'The file on WhatsApp is empty, or not the one that the message describes.',
  media_too_large: 'The file exceeds the limit for its type.',
  media_quota_exceeded: "The instance's space for files was full.",
  media_not_configured: 'The service stored no files: MEDIA_URL was not set.',
} as const
export type ReceivingFailure = keyof typeof RECEIVING_FAILURES

/**
 * Why the bytes of a medium are not available: it has expired, somebody erased it, or they never arrived.
 * `not_fetched`: they could not be fetched from the URL in a message.
 */
export type GoneReason = 'expired' | 'erased' | 'not_fetched' | ReceivingFailure

export function isReceivingFailure(reason: GoneReason): reason is ReceivingFailure {
  return reason in RECEIVING_FAILURES
}

/** The description of a file in its message. The sender chooses it, so it need not be true. */
export interface FileFacts {
  mimetype: string
  /** Bytes. */
  size: number
  sha256: Uint8Array
  filename: string | null
  /** The length of audio or video. */
  seconds: number | null
  /** Pixels. */
  width: number | null
  height: number | null
}

/** The place where WhatsApp holds a file that was sent to the instance, and the key that decrypts it. */
export interface FileSource {
  form: MediaForm
  mediaKey: Uint8Array
  /** The path on any media host, with its query. */
  directPath: string
  /** The hash of the encrypted file. */
  encSha256: Uint8Array
  /** The hash of the file. */
  sha256: Uint8Array
  /** The message, as the linked phone knows it: the phone can be asked to upload the file again. `isOwn`: its owner wrote it. */
  key: { id: string; remoteJid: string; participant: string | null; isOwn?: boolean }
  /** Whether the phone has uploaded it again. */
  isReUploaded?: boolean
}

/** A file of an incoming message. */
export interface IncomingFile {
  facts: FileFacts
  /** Null: the message does not state enough. */
  source: FileSource | null
}

/** The terms under which files are kept. */
export interface MediaTerms {
  quotaBytes: number
  retentionMs: number
}

/** Where the files are kept. */
export type MediaPlace =
  /** `id`: see `claimFolder`. Null or absent: unknown. */
  | { kind: 'folder'; path: string; id?: string | null }
  | {
      kind: 'bucket'
      bucket: string
      /** Before every name; empty or ending in a slash. */
      prefix: string
      /** Null: Amazon's. */
      endpoint: string | null
      /** Null: `AWS_REGION`. */
      region: string | null
    }

/** A CIDR network or an address that is not public but that files may be fetched from. With a port: only at that port. */
export type AllowedNetwork = string | { network: string; port: number }

/** The description of a stored file. */
export interface Media {
  id: string
  mimetype: string
  /** Bytes. */
  size: number
  sha256: Uint8Array
  filename: string | null
  expiresAt: number
}

/** A file in the storage. */
export interface StoredFile {
  media: Media
  /** Reads it from its first byte. @throws FileUnavailable, also while it is being read */
  open(): Promise<AsyncIterable<Uint8Array>>
}

/**
 * Why a file cannot be sent. `no_space`: it was fetched from its URL while the instance's quota was full. `gone`: the
 * instance has no such file, or its bytes are gone.
 */
export type MissingFile = 'pending' | 'too_large' | 'no_space' | 'gone'

/** The bytes of a file are missing or damaged in the storage. Reading them again does not help. */
export class FileUnavailable extends Error {
  override readonly name = 'FileUnavailable'
}

/** Bytes of a file, both ends included. */
export interface ByteRange {
  from: number
  to: number
}

/** How large a file of this type may be, in bytes. */
export function maxBytesOf(mimetype: string): number {
  if (mimetype.startsWith('image/')) return MAX_IMAGE_BYTES
  return /^(audio|video)\//.test(mimetype) ? MAX_AUDIO_OR_VIDEO_BYTES : MAX_MEDIA_BYTES
}

/** The size limit of a received file in this form, in bytes. Pictures that are sent as documents are often larger. */
export function maxBytesAs(form: MediaForm): number {
  if (form === 'image' || form === 'sticker') return MAX_IMAGE_BYTES
  return form === 'document' ? MAX_MEDIA_BYTES : MAX_AUDIO_OR_VIDEO_BYTES
}

/** `image/png` of `Image/PNG; charset=x`. Null unless it names a type. */
export function parseMimetype(text: string): string | null {
  const [, type] = /^\s*([\w.+-]{1,60}\/[\w.+-]{1,90})\s*(?:;|$)/.exec(text) ?? []
  return type?.toLowerCase() ?? null
}

/** Containers of many document formats. */
const CONTAINERS: ReadonlySet<string> = new Set(['application/zip', 'application/x-cfb', 'application/xml'])

/** The default of some clients, such as curl. It says nothing about the file. */
const FORM = 'application/x-www-form-urlencoded'

/**
 * The type of a file, as its content shows it. If the content does not show the type, the declared type counts, unless it is
 * an image, audio or video type, which the content would have shown.
 */
export function typeOf(detected: string | null, declared: string | null): string {
  if (detected !== null && !CONTAINERS.has(detected)) return detected
  const isClaimed = declared !== null && declared !== FORM && !/^(image|audio|video)\//.test(declared)
  return isClaimed ? declared : (detected ?? UNKNOWN_TYPE)
}

/** How much of a name is read, from its end. A sender may state a name of many megabytes. */
const MAX_READ = 4_096

/** Control characters, and those that reorder text and so can hide an extension. */
const MISLEADING = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF\uFFFD]/gu

/** The last part of a path, without misleading characters, at most 255 characters; null if nothing is left. */
export function cleanFilename(name: string): string | null {
  const last = name.slice(-MAX_READ).toWellFormed().split(/[\\/]/).at(-1) ?? ''
  const characters = Array.from(last.replaceAll(MISLEADING, '').trim())
  const clean = shorten(characters)
  return clean === '' || clean === '.' || clean === '..' ? null : clean
}

/** Keeps the extension. */
function shorten(characters: readonly string[]): string {
  if (characters.length <= MAX_FILENAME_LENGTH) return characters.join('')
  const name = characters.join('')
  const [extension = ''] = /\.[A-Za-z0-9]{1,16}$/.exec(name) ?? []
  return characters.slice(0, MAX_FILENAME_LENGTH - extension.length).join('') + extension
}
