import type { InstanceId } from '../../domain/ids.ts'
import { FileUnavailable, type StoredFile } from '../../domain/media.ts'
import { type MessageFailure, type MessageFile, messageFailure } from '../../domain/message.ts'
import { Turns } from '../../kit/turns.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import { type Link, LinkClosed } from '../baileys/link.ts'
import { UploadFailed } from '../baileys/media/upload.ts'

/** Uploads of one instance at the same time. */
const MAX_UPLOADS = 3

/** Reads the files of messages. */
export interface Files {
  /** Null if the instance has no such file, or its bytes are gone. */
  find(instanceId: InstanceId, mediaId: string): Promise<StoredFile | null>
}

export type UploadOutcome =
  | { kind: 'uploaded'; content: Uint8Array }
  | { kind: 'unanswered'; why: string }
  | { kind: 'refused'; failure: MessageFailure }

type UploadLink = Pick<Link, 'uploadFile' | 'closed'>

/** Uploads the files of an instance's messages, a few at a time. */
export class Uploads {
  readonly #files: Files | null
  readonly #turns = new Turns(MAX_UPLOADS)

  /** @param files null: this node has no storage */
  constructor(files: Files | null) {
    this.#files = files
  }

  /** Uploads the file of a message that has no content yet. A kill before the content is stored uploads it again. */
  async upload(message: QueuedMessage, asked: MessageFile, link: UploadLink): Promise<UploadOutcome> {
    if (this.#files === null) return { kind: 'unanswered', why: 'media_not_configured' }
    if (!(await this.#turns.take(link.closed))) return { kind: 'unanswered', why: 'closed' }
    try {
      const file = await this.#files.find(message.instanceId, asked.mediaId)
      if (file === null) return { kind: 'refused', failure: messageFailure('media_unavailable') }
      const { form, filename } = asked
      return { kind: 'uploaded', content: await link.uploadFile({ ...file, form, filename, caption: message.text }) }
    } catch (error) {
      if (error instanceof LinkClosed) return { kind: 'unanswered', why: error.name }
      if (error instanceof FileUnavailable) return { kind: 'refused', failure: messageFailure('media_unavailable') }
      if (error instanceof UploadFailed && error.failure !== null)
        return { kind: 'refused', failure: messageFailure(error.failure) }
      if (error instanceof UploadFailed) return { kind: 'unanswered', why: error.message }
      throw error
    } finally {
      this.#turns.end()
    }
  }
}
