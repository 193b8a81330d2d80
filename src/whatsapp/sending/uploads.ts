import type { InstanceId } from '../../domain/ids.ts'
import {
  FileUnavailable,
  formOf,
  hasCaption,
  type MissingFile,
  type Picture,
  type StoredFile,
} from '../../domain/media.ts'
import {
  type FailureCode,
  type MessageFailure,
  type MessageFile,
  messageFailure,
  NO_SPACE_FOR_FILE,
  NOT_FETCHED_IN_TIME,
} from '../../domain/message.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { Turns } from '../../kit/turns.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import { type Link, LinkClosed } from '../baileys/link.ts'
import type { Attachment } from '../baileys/media/attach.ts'
import { UploadFailed } from '../baileys/media/upload.ts'

/** How long a chat waits for a file that is fetched from its URL. */
const LONGEST_WAIT_MS = 60_000
const MAX_WAITING = 10_000
/** Uploads of one instance at the same time. */
const MAX_UPLOADS = 3

/** Reads the files of messages. */
export interface Files {
  find(instanceId: InstanceId, mediaId: string): Promise<StoredFile | MissingFile>
  /** Null: the file is not a picture, or cannot be read. Never rejects. */
  readPicture(file: StoredFile, signal: AbortSignal): Promise<Picture | null>
}

/** The content of a message, or why it cannot be written now. */
export type ContentOutcome =
  | { kind: 'encoded'; content: Uint8Array }
  | { kind: 'unanswered'; why: string }
  /** The file is still being fetched from its URL. */
  | { kind: 'fetching' }
  | { kind: 'refused'; failure: MessageFailure }

type UploadLink = Pick<Link, 'uploadFile' | 'closed'>

/** Uploads the files of an instance's messages, a few at a time. */
export class Uploads {
  readonly #files: Files | null
  readonly #turns = new Turns(MAX_UPLOADS)
  /** One picture at a time, so that the pictures of an instance hardly delay those of other instances. */
  readonly #pictureTurns = new Turns(1)
  /** By message: since when its chat has been waiting for the file. */
  readonly #waiting = new BoundedMap<string, number>(MAX_WAITING)

  /** @param files null: this node has no storage */
  constructor(files: Files | null) {
    this.#files = files
  }

  /**
   * Uploads the file of a message that has no content yet. After a kill before the content is stored, the file is uploaded
   * again.
   */
  async upload(
    message: QueuedMessage,
    requested: MessageFile,
    link: UploadLink,
    more: Attachment['more'] = null,
  ): Promise<ContentOutcome> {
    if (this.#files === null) return { kind: 'unanswered', why: 'media_not_configured' }
    if (!(await this.#turns.take(link.closed))) return { kind: 'unanswered', why: 'closed' }
    try {
      const file = await this.#files.find(message.instanceId, requested.mediaId)
      if (file === 'pending') return this.#wait(message)
      this.#waiting.delete(message.id)
      if (file === 'no_space') return { kind: 'refused', failure: NO_SPACE_FOR_FILE }
      if (typeof file === 'string') return refused(file === 'too_large' ? 'media_too_large' : 'media_unavailable')
      const form = formOf(file.media.mimetype, requested.form)
      if (form === null || (message.text !== '' && !hasCaption(form))) return refused('media_unsupported')
      const filename = requested.filename ?? file.media.filename
      return {
        kind: 'encoded',
        content: await link.uploadFile({
          ...file,
          form,
          filename,
          caption: message.text,
          picture: this.#readPicture(this.#files, file, link.closed),
          more,
        }),
      }
    } catch (error) {
      if (error instanceof LinkClosed) return { kind: 'unanswered', why: error.name }
      if (error instanceof FileUnavailable) return refused('media_unavailable')
      if (error instanceof UploadFailed && error.failure !== null) return refused(error.failure)
      if (error instanceof UploadFailed) return { kind: 'unanswered', why: error.message }
      throw error
    } finally {
      this.#turns.end()
    }
  }

  /** A small JPEG of a stored picture. Null if none can be made: the message is sent without it. */
  async findThumbnail(
    { instanceId }: Pick<QueuedMessage, 'instanceId'>,
    mediaId: string,
    { closed }: Pick<Link, 'closed'>,
  ): Promise<Uint8Array | null> {
    const file = await this.#files?.find(instanceId, mediaId)
    if (this.#files === null || file === undefined || typeof file === 'string') return null
    return (await this.#readPicture(this.#files, file, closed))?.thumbnail ?? null
  }

  async #readPicture(files: Files, file: StoredFile, closed: AbortSignal): Promise<Picture | null> {
    if (!(await this.#pictureTurns.take(closed))) return null
    // The storage may take a minute to answer.
    const { promise: ended, resolve } = Promise.withResolvers<null>()
    const onClosed = () => resolve(null)
    closed.addEventListener('abort', onClosed, { once: true })
    try {
      return await Promise.race([files.readPicture(file, closed), ended])
    } finally {
      closed.removeEventListener('abort', onClosed)
      this.#pictureTurns.end()
    }
  }

  /** The file is being fetched from its URL. After a restart of the service, the wait begins again. */
  #wait({ id }: QueuedMessage): ContentOutcome {
    const since = this.#waiting.get(id) ?? performance.now()
    this.#waiting.set(id, since)
    if (performance.now() - since <= LONGEST_WAIT_MS) return { kind: 'fetching' }
    return { kind: 'refused', failure: NOT_FETCHED_IN_TIME }
  }
}

function refused(code: FailureCode): ContentOutcome {
  return { kind: 'refused', failure: messageFailure(code) }
}
