import { sql } from 'kysely'
import type { EventMedia } from '../../domain/events/event.ts'
import { type InstanceId, type MessageId, newMediaId } from '../../domain/ids.ts'
import type { IncomingMessage } from '../../domain/incoming-message.ts'
import { type FileFacts, type FileSource, type MediaTerms, maxBytesAs } from '../../domain/media.ts'
import { mediaSourcePlace, type Sealing } from '../encryption/sealing.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'
import type { Download } from './downloads.ts'

/** The file of an incoming message that is being recorded. */
export interface NewReceivedFile {
  id: string
  facts: FileFacts
  /** Null: the message does not state enough to fetch it. */
  sealedSource: Uint8Array | null
  source: FileSource | null
  /** Null: this node has no storage. */
  terms: MediaTerms | null
}

export function newReceivedFile(
  sealing: Sealing,
  instanceId: InstanceId,
  { chat, file }: Pick<IncomingMessage, 'chat' | 'file'>,
  terms: MediaTerms | null,
  now: number,
): NewReceivedFile | null {
  if (file === undefined) return null
  const { facts, source } = file
  const id = newMediaId(now)
  const sealedSource = source && sealSource(sealing, instanceId, id, { source, facts, chat })
  return { id, facts, source, sealedSource, terms }
}

interface Recorded {
  instanceId: InstanceId
  messageId: MessageId
  file: NewReceivedFile
  media: EventMedia
  now: number
}

/** Writes the media of incoming messages in the commit of the messages. */
export class ReceivedFiles {
  readonly #statements: Statements
  readonly #insertMedia
  readonly #insertDownloads

  constructor(statements: Statements) {
    this.#statements = statements
    this.#insertMedia = statements.insert(
      'media',
      {
        instance_id: 'text',
        id: 'text',
        size: 'integer',
        mimetype: 'text',
        filename: 'text?',
        created_at: 'integer',
        expires_at: 'integer',
        gone_at: 'integer?',
        gone_reason: 'text?',
      },
      { fixed: { received: sql.lit(1) } },
    )
    this.#insertDownloads = statements.insert(
      'media_downloads',
      {
        instance_id: 'text',
        media_id: 'text',
        message_id: 'text',
        created_at: 'integer',
        due_at: 'integer',
        sealed_source: 'blob',
      },
      { fixed: { attempts: sql.lit(0), requests: sql.lit(0) } },
    )
  }

  /**
   * The event's description of the file. It has a failure if it is already certain that the file will not be fetched.
   * @param used the bytes that the instance uses
   */
  assess({ id, facts, source, terms }: NewReceivedFile, used: number): EventMedia {
    const shown = { id, facts }
    if (terms === null) return { ...shown, failure: 'media_not_configured' }
    if (source === null) return { ...shown, failure: 'media_unavailable' }
    if (facts.size > maxBytesAs(source.form)) return { ...shown, failure: 'media_too_large' }
    return { ...shown, failure: used + facts.size > terms.quotaBytes ? 'media_quota_exceeded' : null }
  }

  insert(tx: Transaction, recorded: readonly Recorded[]): void {
    if (recorded.length === 0) return
    tx.post(
      this.#insertMedia,
      recorded.map(({ instanceId, file: { id, facts, terms }, media: { failure }, now }) => ({
        instance_id: instanceId,
        id,
        size: facts.size,
        mimetype: facts.mimetype,
        filename: failure === null ? facts.filename : null,
        created_at: now,
        expires_at: now + (terms?.retentionMs ?? 0),
        gone_at: failure === null ? null : now,
        gone_reason: failure,
      })),
    )
    const downloads = recorded.flatMap(({ instanceId, messageId, file: { id, sealedSource }, media, now }) =>
      media.failure !== null || sealedSource === null
        ? []
        : [
            {
              instance_id: instanceId,
              media_id: id,
              message_id: messageId,
              created_at: now,
              due_at: now,
              sealed_source: sealedSource,
            },
          ],
    )
    if (downloads.length > 0) tx.post(this.#insertDownloads, downloads)
  }

  /** The bytes that each of these instances uses. */
  async readUsage(tx: Transaction, instances: ReadonlySet<InstanceId>): Promise<ReadonlyMap<InstanceId, number>> {
    if (instances.size === 0) return new Map()
    const usage = this.#statements.db.selectFrom('media_usage').select(['instance_id', 'bytes'])
    const rows = await tx.query(usage.where('instance_id', 'in', [...instances]))
    return new Map(rows.map(({ instance_id, bytes }) => [instance_id, bytes]))
  }
}

type Sealed = Pick<Download, 'source' | 'facts' | 'chat'>

export function sealSource(sealing: Sealing, instanceId: InstanceId, id: string, { source, facts, chat }: Sealed) {
  const { mediaKey, encSha256, sha256, ...rest } = source
  const bytes = { mediaKey: toHex(mediaKey), encSha256: toHex(encSha256), sha256: toHex(sha256) }
  const text = JSON.stringify({ ...rest, ...bytes, facts: encodeFacts(facts), chat })
  return sealing.seal(instanceId, mediaSourcePlace(instanceId, id), Buffer.from(text))
}

/** Null if the value is damaged. */
export function openSource(sealing: Sealing, instanceId: InstanceId, id: string, sealed: Uint8Array): Sealed | null {
  const json = sealing.tryOpen(instanceId, mediaSourcePlace(instanceId, id), sealed)
  if (json === null) return null
  const opened = JSON.parse(json.toString())
  const { mediaKey, encSha256, sha256, facts, chat, ...rest } = opened
  const bytes = { mediaKey: fromHex(mediaKey), encSha256: fromHex(encSha256), sha256: fromHex(sha256) }
  return { source: { ...rest, ...bytes }, facts: decodeFacts(facts), chat }
}

/** As JSON. */
export function encodeFacts({ sha256, ...facts }: FileFacts): string {
  return JSON.stringify({ ...facts, sha256: toHex(sha256) })
}

export function decodeFacts(json: string): FileFacts {
  const { sha256, ...facts } = JSON.parse(json)
  return { ...facts, sha256: fromHex(sha256) }
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function fromHex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'))
}
