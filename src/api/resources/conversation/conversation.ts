import { type Static, Type } from 'typebox'
import { MESSAGE_STATES, type Message } from '../../../domain/message.ts'
import { moment, nullable, oneOf, toIso } from '../schema-kit.ts'

const lineSchema = Type.Object(
  {
    id: Type.String({ description: 'The ID of the sent message, or of the event of the received one.' }),
    direction: oneOf(['out', 'in'], { description: '`out`: from the instance; `in`: to it.' }),
    text: Type.String(),
    mediaId: nullable(Type.String({ description: 'The file of the message, if it has one.' })),
    at: moment('When it was accepted, or received.'),
    status: nullable(oneOf(MESSAGE_STATES, { description: 'The state of a sent message; null for a received one.' })),
    from: nullable(Type.String({ description: 'The sender of a message in a group; otherwise null.' })),
    name: nullable(Type.String({ description: "The sender's push name in a group, if known; otherwise null." })),
  },
  { title: 'ConversationLine' },
)

export type ConversationLineView = Static<typeof lineSchema>

export const conversationSchema = Type.Object(
  {
    with: Type.String({ description: 'The number or group on the other side.' }),
    name: nullable(Type.String({ description: "The contact's name, if known." })),
    lines: Type.Array(lineSchema, { description: 'Oldest first.' }),
  },
  { title: 'Conversation', description: 'The messages between an instance and one number or group.' },
)

export type ConversationView = Static<typeof conversationSchema>

export const sandboxPhoneSchema = Type.Object(
  { on: Type.Boolean({ description: 'Whether the simulated phone is switched on.' }) },
  { title: 'SandboxPhone' },
)

export type SandboxPhoneView = Static<typeof sandboxPhoneSchema>

interface ReceivedEvent {
  id: string
  createdAt: number
  /** The posted bytes. */
  body: string
}

interface ReceivedData {
  /** The contact was erased, and with it the content of the event. */
  erased?: true
  from: string
  text?: string
  group?: string
  name?: string
  media?: { id: string }
}

type Entry = { line: ConversationLineView; with: string; contactName: string | null; moment: number }

/** Groups sent and received messages by the other party, latest conversation first. */
export function conversationViews(sent: readonly Message[], received: readonly ReceivedEvent[]): ConversationView[] {
  const entries = [...sent.map(sentEntry), ...received.flatMap(receivedEntry)].sort((a, b) => a.moment - b.moment)
  const byAddress = Map.groupBy(entries, entry => entry.with)
  return Array.from(byAddress, ([address, lines]) => ({ address, lines, latest: lines.at(-1)?.moment ?? 0 }))
    .sort((a, b) => b.latest - a.latest)
    .map(({ address, lines }) => ({
      with: address,
      name: lines.findLast(({ contactName }) => contactName !== null)?.contactName ?? null,
      lines: lines.map(({ line }) => line),
    }))
}

function sentEntry({ id, to, text, file, state, createdAt }: Message): Entry {
  const mediaId = file?.mediaId ?? null
  return {
    line: { id, direction: 'out', text, mediaId, at: toIso(createdAt), status: state, from: null, name: null },
    with: to,
    contactName: null,
    moment: createdAt,
  }
}

function receivedEntry({ id, createdAt, body }: ReceivedEvent): Entry[] {
  const { data } = JSON.parse(body) as { data: ReceivedData }
  if (data.erased) return []
  const isGroup = data.group !== undefined
  const entry: Entry = {
    line: {
      id,
      direction: 'in',
      text: data.text ?? '',
      mediaId: data.media?.id ?? null,
      at: toIso(createdAt),
      status: null,
      from: isGroup ? data.from : null,
      name: isGroup ? (data.name ?? null) : null,
    },
    with: data.group ?? data.from,
    contactName: isGroup ? null : (data.name ?? null),
    moment: createdAt,
  }
  return [entry]
}
