import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { ZipFile } from 'yazl'
import type { InstanceId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { ContactData, ContactMessage } from '../../../store/retention/retention.ts'
import type { Store } from '../../../store/store.ts'
import type { MediaApi } from '../../context.ts'
import { chatEntryView } from '../../resources/conversation/inbox.ts'
import { listedMediaView } from '../../resources/media.ts'
import { toIso } from '../../resources/schema-kit.ts'

/** How long the reader may take for one piece of the archive. */
const READ_WITHIN_MS = 60_000

/** How often the access of the reader is checked. An archive with large files may be read for hours. */
const CHECK_EVERY_MS = 1_000

const READ_ME = `This archive contains what is stored about one person for one WhatsApp number.

contact.json     The numbers and addresses of the person, the names, cached look-ups, and those groups of the number's owner
                 that the person is in.
messages.jsonl   Every message to and from the person, newest first, one in each line (JSON Lines). Last come the messages
                 that the person wrote in groups, and what the owner did with these: reactions, deletions, read marks, and
                 replies that quote them. "direction" is "in" for a message from the person and "out" for one to the person or the group;
                 "command" is a reaction, an edit, a deletion or a read mark of the number's owner.
events.jsonl     The events that were sent to the owner's programs about these messages (except replies in groups), one in
                 each line, with each attempt to deliver it. Last come events that report the person as a new, former,
                 promoted or demoted member of a group; other people are left out of them.
files.jsonl      The pictures, recordings, videos and documents of these messages, one in each line. "path" is the place of
                 the file in this archive. Without it, "problem" says why the file is not here.
files/           The files themselves.

All times are in UTC. Not in this archive: messages that were stored after the export began, the keys with which WhatsApp
encrypts messages to the person, what other people wrote about the person, and backups.
`

export interface ContactArchiveOptions {
  instance: { id: InstanceId; name: string; phone: string | null }
  /** As the caller named the person. */
  contact: string
  data: ContactData
  store: Pick<Store, 'media' | 'clock'>
  media: MediaApi | null
  /** Called while the archive is read. If it rejects, the archive ends early. */
  checkAgain(): Promise<void>
  /** Ends the archive early, so that it cannot be opened. */
  closing: AbortSignal
}

/** A zip file, written while it is read. Only its list of files grows in memory. It fails if a read fails. */
export function createContactArchive(options: ContactArchiveOptions): Readable {
  const zip = new ZipFile()
  const output = zip.outputStream as Readable
  const body = Readable.from(paced(output, options.checkAgain), { objectMode: false })
  const fail = (error: unknown) => {
    // The body closes only when it no longer waits for a piece.
    output.destroy()
    body.destroy(error instanceof Error ? error : new Error(String(error)))
  }
  const onClosing = () => fail(new Error('The service is closing.'))
  options.closing.addEventListener('abort', onClosing)
  body.once('close', () => options.closing.removeEventListener('abort', onClosing))
  zip.on('error', fail)
  new ContactArchive(zip, body, options).write().then(() => zip.end(), fail)
  return body
}

class ContactArchive {
  readonly #zip: ZipFile
  readonly #body: Readable
  readonly #options: ContactArchiveOptions
  /** The message of each file, in the order of the messages. */
  readonly #files = new Map<string, string>()

  constructor(zip: ZipFile, body: Readable, options: ContactArchiveOptions) {
    this.#zip = zip
    this.#body = body
    this.#options = options
  }

  async write(): Promise<void> {
    const { instance, contact, data, store } = this.#options
    const { names, entries } = data
    const facts = { exportedAt: toIso(store.clock.now()), instance, requested: contact, names, ...entries }
    await this.#add('README.txt', [READ_ME])
    await this.#add('contact.json', [`${JSON.stringify(facts, null, 2)}\n`])
    await this.#add('messages.jsonl', this.#messages())
    await this.#add('events.jsonl', this.#events())
    const listed: string[] = []
    for (const [mediaId, messageId] of this.#files) listed.push(await this.#addFile(mediaId, messageId))
    await this.#add('files.jsonl', listed)
  }

  /** Resolves when the reader has read the whole file. Rejects if the archive ends before. */
  async #add(path: string, parts: Iterable<string> | AsyncIterable<string | Uint8Array>, compress = true) {
    if (this.#body.destroyed) throw new Error('The archive has ended.')
    const stream = Readable.from(parts, { objectMode: false })
    const stop = () => stream.destroy()
    this.#body.once('close', stop)
    this.#zip.addReadStream(stream, path, { compress })
    try {
      await finished(stream)
    } finally {
      this.#body.off('close', stop)
    }
  }

  async *#messages(): AsyncGenerator<string, void> {
    for await (const message of this.#options.data.messages()) {
      const { entry, mediaId } = message
      const id = entry.direction === 'command' ? entry.command.id : entry.message.id
      if (mediaId !== null && !this.#files.has(mediaId)) this.#files.set(mediaId, id)
      yield `${JSON.stringify(lineOf(message))}\n`
    }
  }

  async *#events(): AsyncGenerator<string, void> {
    for await (const { body, createdAt, attempts, ...event } of this.#options.data.events()) {
      const tried = attempts.map(({ startedAt, ...attempt }) => ({ startedAt: toIso(startedAt), ...attempt }))
      yield `${JSON.stringify({ ...event, createdAt: toIso(createdAt), body: JSON.parse(body), attempts: tried })}\n`
    }
  }

  /** @returns its line in the list of files */
  async #addFile(mediaId: string, messageId: string): Promise<string> {
    const { instance, store, media } = this.#options
    const listed = await store.media.findListed(instance.id, mediaId)
    const facts = { ...(listed ? listedMediaView(listed) : { id: mediaId }), messageId }
    const line = (path: string | null, problem: string | null) => `${JSON.stringify({ ...facts, path, problem })}\n`
    if (media === null) return line(null, 'This service stores no files.')
    const path = `files/${mediaId}${extensionOf(listed?.filename ?? null, listed?.mimetype ?? '')}`
    try {
      const { media: found, read } = await media.open(instance.id, mediaId, 'export')
      const bytes = await read({ from: 0, to: found.size - 1 })
      const damage: Refusal[] = []
      try {
        // Most files are already compressed.
        await this.#add(path, untilDamaged(bytes, damage), false)
      } finally {
        // If the archive ended before the first byte was read, nothing else closes the file.
        await bytes[Symbol.asyncIterator]().return?.()
      }
      return line(path, damage[0] === undefined ? null : `Only its beginning is here. ${damage[0].message}`)
    } catch (error) {
      if (error instanceof Refusal && IS_MISSING.has(error.code)) return line(null, error.message)
      throw error
    }
  }
}

const IS_MISSING: ReadonlySet<string> = new Set(['media_gone', 'media_pending', 'media_not_found'])

/** Ends early at a damaged place, because the export of everything else must not depend on it. */
async function* untilDamaged(bytes: AsyncIterable<Uint8Array>, damage: Refusal[]): AsyncGenerator<Uint8Array, void> {
  try {
    yield* bytes
  } catch (error) {
    if (!(error instanceof Refusal && error.code === 'media_gone')) throw error
    damage.push(error)
  }
}

/** All that the instance stores of a message or command. */
function lineOf({ entry }: ContactMessage): object {
  const view = chatEntryView(entry, new Map())
  if (entry.direction === 'command') return { ...view, request: entry.command.command }
  const preview = entry.direction === 'out' ? entry.message.extras?.preview : undefined
  return preview === undefined ? view : { ...view, preview }
}

function extensionOf(filename: string | null, mimetype: string): string {
  const [, ofName] = /\.([a-z0-9]{1,8})$/i.exec(filename ?? '') ?? []
  const [, ofType] = /^[a-z]+\/([a-z0-9]{1,8})(;|$)/.exec(mimetype) ?? []
  const extension = ofName ?? ofType
  return extension === undefined ? '' : `.${extension.toLowerCase()}`
}

/** Ends an archive whose reader has stopped reading, or may no longer read it. */
async function* paced(output: Readable, checkAgain: () => Promise<void>): AsyncGenerator<Uint8Array, void> {
  let checkedAt = performance.now()
  for await (const piece of output) {
    if (performance.now() - checkedAt >= CHECK_EVERY_MS) {
      await checkAgain()
      checkedAt = performance.now()
    }
    const late = setTimeout(() => output.destroy(new Error('The archive was not read.')), READ_WITHIN_MS)
    try {
      yield piece
    } finally {
      clearTimeout(late)
    }
  }
}
