import { type Command, EDIT_WINDOW_MS, type Mentions, type Quote } from '../../domain/conversation.ts'
import type { MessageId } from '../../domain/ids.ts'
import { messageFailure } from '../../domain/message.ts'
import { otherSpelling, parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Messages, QueuedMessage, QuotedMessage } from '../../store/messages/messages.ts'
import { untilStored } from '../../store/until-stored.ts'
import { numberOf } from '../baileys/addresses.ts'
import { type ChatContext, encodeContent } from '../baileys/encode-content.ts'
import type { Link } from '../baileys/link.ts'
import { jidOfMember } from '../baileys/parsing/group.ts'
import type { GroupDirectory, GroupSource } from './group-directory.ts'
import type { ContentOutcome, Uploads } from './uploads.ts'

type ComposingLink = GroupSource & Pick<Link, 'self' | 'uploadFile' | 'closed'>
type Obstacle = Exclude<ContentOutcome, { kind: 'encoded' }>

interface ComposerOptions {
  lease: Lease
  store: { messages: Pick<Messages, 'find' | 'findQuoted' | 'recordUnquoted'> }
  groups: GroupDirectory
  uploads: Uploads
  /** Resolves when the outcomes that are being recorded are stored. */
  outcomes: { drained(): Promise<void> }
  now: () => number
  signal: AbortSignal
}

/** Composes every message: a text or file, its quote, mentions, preview and metadata, or the command that it is. */
export class Composer {
  readonly #options: ComposerOptions

  constructor(options: ComposerOptions) {
    this.#options = options
  }

  /** Also uploads the file of a message. From the commit of the content on, every attempt refers to that upload. */
  async compose(message: QueuedMessage, address: string, link: ComposingLink): Promise<ContentOutcome> {
    const { id, text, file, prepared, extras = {} } = message
    const { quote, mentions, preview } = extras
    const { groups, uploads, now } = this.#options
    if (prepared) return { kind: 'encoded', content: prepared.content }
    const previewImage = preview?.image && !file ? await uploads.findThumbnail(message, preview.image, link) : null
    const quoted = quote && !quote.dropped ? await this.#findQuoted(id, quote, address) : null
    if (quoted === 'waits') return { kind: 'unanswered', why: 'quoted_queued' }
    const mentioned = mentions?.length ? await this.#addressesOf(mentions, address, link) : []
    if (mentioned === null) return { kind: 'unanswered', why: 'group_query' }
    const group = parseRecipient(address)?.kind === 'group' ? await groups.describe(address) : null
    const context: ChatContext = { address, self: link.self, group, mentioned, quoted, now: now() }
    if (file) return uploads.upload(message, file, link, { extras, context })
    return { kind: 'encoded', content: encodeContent(text, extras, { ...context, previewImage }) }
  }

  /** Call before each attempt. @returns null if the message is not a command, or may be sent */
  async checkCommand({ prepared, extras }: QueuedMessage): Promise<Obstacle | null> {
    const command = extras?.command
    if (command === undefined) return null
    if (!prepared) return this.#checkTarget(command)
    return command.kind === 'edit' ? this.#checkEditAgain(command) : null
  }

  /** An edit that may have reached WhatsApp is not written again if it would be refused now. */
  async #checkEditAgain(edit: Command): Promise<Obstacle | null> {
    const refusal = await this.#checkTarget(edit)
    return refusal?.kind === 'refused' ? { kind: 'refused', failure: messageFailure('unconfirmed') } : refusal
  }

  /** The target precedes its command in the order of the chat, so normally it is already sent or has failed. */
  async #checkTarget(command: Command): Promise<Obstacle | null> {
    if (command.target.author !== null) return null
    const target = await this.#findRecorded(command.target.messageId)
    // An erased message can still be deleted on WhatsApp, and reacted to.
    if (target === null && command.kind !== 'edit') return null
    if (target === null || target.state === 'failed')
      return { kind: 'refused', failure: messageFailure('message_failed') }
    if (target.state === 'queued') return { kind: 'unanswered', why: 'target_queued' }
    const isLate = target.sentAt !== null && this.#options.now() - target.sentAt > EDIT_WINDOW_MS
    if (command.kind === 'edit' && isLate) return { kind: 'refused', failure: messageFailure('edit_window_closed') }
    return null
  }

  /**
   * Records that the quote was dropped if the quoted message is scheduled, has failed, was erased or is in another chat.
   * @returns null if the message is sent without a quote
   */
  async #findQuoted(id: string, quote: Quote, address: string): Promise<QuotedMessage | 'waits' | null> {
    const quoted = await this.#findRecorded(quote.messageId)
    const isDone = quoted !== null && quoted.state !== 'failed' && quoted.state !== 'queued'
    if (isDone && !isOfOtherNumber(quoted, address)) return quoted
    const { store, lease, signal } = this.#options
    if (quoted?.state === 'queued') {
      const message = await untilStored(() => store.messages.find(lease.instanceId, quote.messageId), signal)
      // A scheduled message may follow this one in the order of the chat. Then each would wait for the other.
      if (message?.notBefore === undefined) return 'waits'
    }
    await untilStored(() => store.messages.recordUnquoted(lease, id), signal)
    return null
  }

  /** Waits for outcomes first: WhatsApp may have just acknowledged the message, or an earlier edit or deletion of it. */
  async #findRecorded(messageId: MessageId): Promise<QuotedMessage | null> {
    const { store, lease, outcomes, signal } = this.#options
    await outcomes.drained()
    return untilStored(() => store.messages.findQuoted(lease.instanceId, messageId), signal)
  }

  /** @returns null if WhatsApp gave no answer */
  async #addressesOf(mentions: Mentions, address: string, link: GroupSource): Promise<readonly string[] | null> {
    const { groups } = this.#options
    if (parseRecipient(address)?.kind !== 'group') return mentions === 'all' ? [address] : mentions.map(jidOf)
    if ((await groups.find(address, link)) === 'silent') return null
    const group = await groups.describe(address)
    const members = group?.members ?? []
    const addressing = group?.addressing ?? 'lid'
    if (mentions === 'all') return members.map(member => jidOfMember(member, addressing))
    return mentions.map(mention => {
      const mentioned = members.find(({ lid, phone }) => mention === lid || mention === phone)
      return mentioned ? jidOfMember(mentioned, addressing) : jidOf(mention)
    })
  }
}

/** A quote is accepted for either spelling of a number. They may be two people, each with a chat. */
function isOfOtherNumber({ chats }: QuotedMessage, address: string): boolean {
  const number = numberOf(address)
  const other = number === undefined ? null : otherSpelling(number)
  return other !== null && chats.includes(other) && !chats.includes(number!)
}

function jidOf(mention: string): string {
  return mention.includes('@') ? mention : `${mention}@s.whatsapp.net`
}
