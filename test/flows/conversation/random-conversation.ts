import { isDeepStrictEqual } from 'node:util'
import type { PhoneMessage } from '../../network.ts'
import type { Talking } from './harness.ts'

/** The instance by its API, its owner on the phone, and the other side. */
export const WRITERS = ['api', 'owner', 'contact'] as const
type Writer = (typeof WRITERS)[number]
export const DEEDS = ['text', 'quote', 'edit', 'react', 'take_back', 'delete', 'forge'] as const
export const TROUBLES = ['cut', 'cut_behind', 'cut_receipt', 'lose_text', 'double'] as const

/** Every cut makes the pause before the next connection longer. */
const MAX_TROUBLES = 3

/** One step of a conversation. `target` chooses one of the existing messages. */
export interface Step {
  by: Writer
  deed: (typeof DEEDS)[number]
  target: number
  trouble: (typeof TROUBLES)[number] | null
}

/** What both sides must see of a message. */
interface Said {
  by: Writer
  whatsappId: string
  /** Pombal's ID. */
  id: string
  text: string
  isEdited: boolean
  isDeleted: boolean
  /** WhatsApp's ID of the message that it quotes. */
  quoted: string | null
  /** By the number of the person who reacted. */
  reactions: Record<string, string>
  /** The events that the service must report about it, in this order. */
  changes: ('message.edited' | 'message.deleted')[]
}

/** Plays a conversation between an instance and one contact, and knows how it must look. */
export class RandomConversation {
  readonly #talking: Talking
  readonly #contact: string
  readonly #said: Said[] = []
  readonly #commands: string[] = []
  readonly #reactionEvents: string[] = []
  readonly #problems: unknown[] = []
  #count = 0
  #troubles = 0
  #hidden: number | undefined

  constructor(talking: Talking, contact: string) {
    this.#talking = talking
    this.#contact = contact
  }

  /** From now on WhatsApp names the contact by its LID only. */
  async hideNumber(): Promise<void> {
    const rule = {
      when: { stanza: 'message', direction: 'out', account: this.#phone },
      do: { address: 'lid', alternate: false },
    }
    this.#hidden = (await this.#network.misbehave({ kind: 'rule', rule } as never)).rule
  }

  async revealNumber(): Promise<void> {
    if (this.#hidden !== undefined) await this.#network.misbehave({ kind: 'remove_rule', id: this.#hidden })
    this.#hidden = undefined
  }

  async take({ by, deed, target, trouble }: Step): Promise<void> {
    await this.#upset(trouble)
    if (deed === 'text') return this.#write(by, null)
    const known = this.#said.filter(({ isDeleted }) => !isDeleted)
    const mine = known.filter(one => (one.by === 'contact') === (by === 'contact'))
    // Each side can edit or delete only its own messages. The API and the owner of the phone are one side.
    const targets =
      deed === 'edit' || deed === 'delete' ? mine : deed === 'forge' ? known.filter(one => !mine.includes(one)) : known
    const one = targets[target % targets.length]
    if (one === undefined) return this.#write(by, null)
    switch (deed) {
      case 'quote':
        return this.#write(by, one)
      case 'edit':
        return this.#edit(by, one)
      case 'delete':
        return this.#delete(by, one)
      case 'react':
        return this.#react(by, one, ['👍', '❤️', '😀'][target % 3]!)
      case 'take_back':
        return this.#react(by, one, '')
      case 'forge':
        return by === 'contact' ? this.#forge(one) : this.#write(by, one)
    }
  }

  /** @returns everything that differs from the expected conversation */
  async differences(): Promise<unknown[]> {
    await this.revealNumber()
    await this.#write('contact', null)
    await this.#write('api', null)
    for (const id of this.#commands) await this.#talking.event('command.done', data => data.id === id)
    return [...this.#problems, ...(await this.#onPhones()), ...(await this.#inRows()), ...(await this.#inEvents())]
  }

  async #write(by: Writer, quoted: Said | null): Promise<void> {
    this.#count += 1
    const text = `${by} ${this.#count}`
    const { id, whatsappId } = by === 'api' ? await this.#send(text, quoted) : await this.#receive(by, text, quoted)
    const fresh = { isEdited: false, isDeleted: false, reactions: {}, changes: [] }
    this.#said.push({ by, id, whatsappId, text, ...fresh, quoted: quoted?.whatsappId ?? null })
  }

  async #send(text: string, quoted: Said | null) {
    const to = await this.#nameOfContact()
    const id = await this.#talking.send({ to, text, ...(quoted && { quote: quoted.id }) })
    await this.#talking.event('message.sent', data => data.id === id)
    const shown = (await this.#talking.inbox(this.#contact)).find(message => message.text === text)
    return { id, whatsappId: shown?.id ?? 'not shown' }
  }

  async #receive(by: 'owner' | 'contact', text: string, quoted: Said | null) {
    const whatsappId = await this.#onPhone(by, { text, ...(quoted && { quote: quoted.whatsappId }) })
    const kind = by === 'owner' ? 'message.written' : 'message.received'
    const { data } = await this.#talking.event(kind, found => found.id === whatsappId)
    return { id: String(data['messageId']), whatsappId }
  }

  async #edit(by: Writer, one: Said): Promise<void> {
    this.#count += 1
    const text = `edit ${this.#count}`
    if (by === 'api') await this.#command('PATCH', one, '', { text })
    else {
      await this.#onPhone(by, { edit: { id: one.whatsappId, text } })
      await this.#reported('message.edited', one, data => data['text'] === text)
    }
    Object.assign(one, { text, isEdited: true })
  }

  async #delete(by: Writer, one: Said): Promise<void> {
    if (by === 'api') await this.#command('DELETE', one)
    else {
      await this.#onPhone(by, { delete: one.whatsappId })
      await this.#reported('message.deleted', one)
    }
    one.isDeleted = true
  }

  async #react(by: Writer, one: Said, emoji: string): Promise<void> {
    if (by === 'api') await this.#command(emoji ? 'PUT' : 'DELETE', one, '/reaction', emoji ? { emoji } : undefined)
    else {
      const id = await this.#onPhone(by, { reaction: { to: one.whatsappId, emoji } })
      const kind = by === 'owner' ? 'message.written' : 'message.received'
      const { data } = await this.#talking.event(kind, found => found.id === id)
      const reaction = { messageId: one.id, whatsappId: one.whatsappId, emoji: emoji || null }
      this.#problems.push(...differencesOf('a reaction', reaction, data['reaction']))
      this.#reactionEvents.push(id)
    }
    const who = by === 'contact' ? this.#contact : this.#phone
    if (emoji) one.reactions[who] = emoji
    else delete one.reactions[who]
  }

  /** The contact's client edits and deletes a message that is not the contact's. Phones ignore it. */
  async #forge({ whatsappId: id }: Said): Promise<void> {
    const key = { remoteJid: `${this.#phone}@s.whatsapp.net`, fromMe: true, id }
    const edit = { key, type: 'MESSAGE_EDIT', editedMessage: { conversation: 'forged' } }
    await this.#onPhone('contact', { content: { protocolMessage: edit } })
    await this.#onPhone('contact', { content: { protocolMessage: { key, type: 'REVOKE' } } })
  }

  async #command(method: string, { id }: Said, path = '', body?: object): Promise<void> {
    const answer = await this.#talking.call(method, `/messages/${id}${path}`, body)
    if (answer.status !== 202) throw new Error(`${method} was refused: ${JSON.stringify(answer.body)}`)
    const command = answer.body.data.id
    this.#commands.push(command)
    await this.#talking.event('command.done', data => data.id === command)
  }

  /** @returns WhatsApp's ID */
  async #onPhone(by: 'owner' | 'contact', message: object): Promise<string> {
    const sent =
      by === 'owner'
        ? await this.#network.writeAsOwner({ phone: this.#phone, to: this.#contact, ...message })
        : await this.#network.writeAs({ from: this.#contact, to: this.#phone, ...message })
    return sent.id
  }

  async #reported(
    kind: Said['changes'][number],
    one: Said,
    fits: (data: Record<string, unknown>) => boolean = () => true,
  ) {
    await this.#talking.event(kind, data => data['messageId'] === one.id && fits(data))
    one.changes.push(kind)
  }

  /** The name of the chat in the last event about a message that WhatsApp delivered. Pombal may not know the number yet. */
  async #nameOfContact(): Promise<string> {
    const last = this.#talking
      .events()
      .findLast(({ event }) => event === 'message.received' || event === 'message.written')
    return String(last?.data['chat'] ?? this.#contact)
  }

  async #upset(trouble: Step['trouble']): Promise<void> {
    if (trouble === null || this.#troubles >= MAX_TROUBLES) return
    this.#troubles += 1
    const account = this.#phone
    const message = { stanza: 'message', account }
    const rules = {
      cut_behind: { when: { ...message, direction: 'out', times: 1 }, do: 'cut_after' },
      cut_receipt: { when: { stanza: 'receipt', direction: 'in', account, times: 1 }, do: 'cut' },
      lose_text: { when: { ...message, direction: 'in', times: 1 }, do: 'cut' },
      double: { when: { ...message, direction: 'out', times: 3 }, do: 'double' },
    }
    if (trouble === 'cut') await this.#network.misbehave({ kind: 'cut', account })
    else await this.#network.misbehave({ kind: 'rule', rule: rules[trouble] } as never)
  }

  async #onPhones(): Promise<unknown[]> {
    const shown = new Map<string, PhoneMessage>()
    for (const message of await this.#talking.inbox(this.#contact)) shown.set(message.id, message)
    for (const message of await this.#talking.inbox(this.#phone)) shown.set(message.id, message)
    const isText = ({ text }: PhoneMessage) => text !== ''
    const texts = [...shown.values()].filter(isText).map(({ id }) => id)
    return [
      ...differencesOf(
        'texts on the phones',
        this.#said.map(({ whatsappId }) => whatsappId).toSorted(),
        texts.toSorted(),
      ),
      ...this.#said.flatMap(one => {
        const { text = '', edited, deleted = false, reactions = {}, quoted = null } = shown.get(one.whatsappId) ?? {}
        const expected = {
          text: one.text,
          deleted: one.isDeleted,
          reactions: sorted(one.reactions),
          quoted: one.quoted,
        }
        return differencesOf(`${one.whatsappId} on the phone`, expected, {
          text: edited ?? text,
          deleted,
          reactions: sorted(reactions),
          quoted,
        })
      }),
    ]
  }

  async #inRows(): Promise<unknown[]> {
    const { phone } = await this.#lidOfContact()
    const rows = (await this.#talking.call('GET', `/messages?chat=${phone}&limit=200`)).body.data
    const texts = rows.filter(({ type = 'text' }) => type === 'text')
    const ids = texts.map(({ id }: { id: string }) => id)
    const idOf = new Map(this.#said.map(({ whatsappId, id }) => [whatsappId, id]))
    return [
      ...differencesOf('texts in rows', this.#said.map(({ id }) => id).toSorted(), ids.toSorted()),
      ...this.#said.flatMap(one => {
        const row = texts.find(({ id }: { id: string }) => id === one.id) ?? {}
        const expected = {
          direction: one.by === 'contact' ? 'in' : 'out',
          text: one.isDeleted ? '' : one.text,
          edited: one.isEdited,
          deleted: one.isDeleted,
          quoted: one.quoted !== null && !(one.isDeleted && one.by !== 'api') ? idOf.get(one.quoted) : undefined,
        }
        return differencesOf(`${one.id} in its row`, expected, {
          direction: row.direction,
          text: row.text ?? '',
          edited: typeof row.editedAt === 'string',
          deleted: typeof row.deletedAt === 'string',
          quoted: row.quote?.messageId,
        })
      }),
    ]
  }

  /** @throws Error if the LID and the number list different messages */
  async #lidOfContact(): Promise<{ phone: string; lid: string }> {
    const data = this.#talking.events().findLast(({ event }) => event === 'message.received')!.data
    const [phone, lid] = [String(data['phone']), String(data['lid'])]
    const ids = async (chat: string) =>
      (await this.#talking.call('GET', `/messages?chat=${chat}&limit=200`)).body.data.map(
        ({ id }: { id: string }) => id,
      )
    const [byPhone, byLid] = [await ids(phone), await ids(lid)]
    if (JSON.stringify(byPhone) !== JSON.stringify(byLid))
      throw new Error('The number and the LID of the chat list different messages.')
    return { phone, lid }
  }

  async #inEvents(): Promise<unknown[]> {
    const { requests } = this.#talking.harness.receiver
    // Delivery is at least once, under one ID.
    const bodies = new Map(
      requests.filter(({ path }) => path.endsWith('/all')).map(one => [String(one.headers['webhook-id']), one.body]),
    )
    const events = Array.from(bodies.values(), body => JSON.parse(body.toString())).filter(
      ({ instanceId }) => instanceId === this.#talking.number.id,
    )
    const kindsOf = (one: Said) =>
      events.filter(({ event, data }) => event.startsWith('message.') && (data.messageId ?? data.id) === one.id)
    const reactions = events.filter(({ data }) => data.type === 'reaction').map(({ data }) => data.id)
    const done = events.filter(({ event }) => event === 'command.done').map(({ data }) => data.id)
    return [
      ...differencesOf('reactions in events', this.#reactionEvents.toSorted(), reactions.toSorted()),
      ...differencesOf('commands in events', this.#commands.toSorted(), done.toSorted()),
      ...differencesOf(
        'unknown messages',
        [],
        events.filter(({ event, data }) => /edited|deleted/.test(event) && data.messageId === null),
      ),
      ...this.#said.flatMap(one => {
        const kinds = kindsOf(one).map(({ event }) => event)
        const first = { api: 'message.sent', owner: 'message.written', contact: 'message.received' }[one.by]
        const status = kinds.filter(kind => kind === 'message.delivered' || kind === 'message.read')
        return [
          ...differencesOf(
            `events of ${one.id}`,
            [first, ...one.changes],
            kinds.filter(kind => !status.includes(kind)),
          ),
          ...differencesOf(`receipts of ${one.id}`, status.length, new Set(status).size),
        ]
      }),
    ]
  }

  get #phone(): string {
    return this.#talking.number.phone
  }

  get #network() {
    return this.#talking.harness.network
  }
}

function sorted(reactions: Record<string, string>): [string, string][] {
  return Object.entries(reactions).toSorted(([one], [other]) => (one < other ? -1 : 1))
}

function differencesOf(what: string, expected: unknown, found: unknown): unknown[] {
  return isDeepStrictEqual(found, expected) ? [] : [{ what, expected, found }]
}
