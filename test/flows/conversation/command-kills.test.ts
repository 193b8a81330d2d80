import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { STORES } from '../../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import type { ReceivedEvent } from '../../receiver.ts'
import { newSeed, Random } from '../../rig/random.ts'
import { until } from '../../until.ts'
import { type Answered, Talking } from './harness.ts'

/** On each store. `COMMAND_KILLS=50` for a longer run. */
const KILLS = Number(process.env['COMMAND_KILLS'] ?? 10)
/** Each chat executes the same commands. A kill finds them at different steps. */
const CHATS = 5
/** WhatsApp acknowledges a stanza after twice this time, so a kill finds the chats at any step. */
const LATENCY_MS = 60
const KILL_WITHIN_MS = 800

const SCHEDULED_AFTER_MS = 400

const ON_PHONE = 'escrita no celular'
const LATER = 'mais tarde'

/** What a phone shows of a message or command. */
const shownOf = ({ text, details }: { text: string; details?: { [name: string]: { text?: string; type?: string } } }) =>
  details?.['reactionMessage']?.text ?? details?.['protocolMessage']?.type ?? text

/** The requested commands of one chat, and what happened on its phones meanwhile. */
interface Asked {
  to: string
  first: string
  second: string
  edit: string
  /** The other commands. */
  commands: string[]
  /** A scheduled message, whose time comes soon, and one that is deleted before its time. */
  later: string
  never: string
  received: { id: string; messageId: string }
  written: string
}

async function ask(talking: Talking, to: string, received: ReceivedEvent['data']): Promise<Asked> {
  const accepted = ({ status, body }: Answered): string => {
    expect(status).toBe(202)
    return body.data.id
  }
  const first = await talking.send({ to, text: 'errado' })
  const edit = accepted(await talking.call('PATCH', `/messages/${first}`, { text: 'certo' }))
  const reaction = accepted(await talking.call('PUT', `/messages/${received['messageId']}/reaction`, { emoji: '👍' }))
  const read = accepted(await talking.call('POST', `/messages/${received['messageId']}/read`))
  const second = await talking.send({ to, text: 'seguinte', quote: first })
  const deletion = accepted(await talking.call('DELETE', `/messages/${first}`))
  const takenBack = accepted(await talking.call('DELETE', `/messages/${received['messageId']}/reaction`))
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
  const later = await talking.send({ to, text: LATER, sendAt: inMs(SCHEDULED_AFTER_MS) })
  const never = await talking.send({ to, text: 'nunca', sendAt: inMs(3_600_000) })
  const cancellation = accepted(await talking.call('DELETE', `/messages/${never}`))
  const { network } = talking.harness
  const { phone } = talking.number
  await network.writeAs({ from: to, to: phone, edit: { id: received.id, text: 'outra pergunta' } })
  const { id: written } = await network.writeAsOwner({ phone, to, text: ON_PHONE })
  await network.writeAs({ from: to, to: phone, delete: received.id })
  const message = { id: String(received.id), messageId: String(received['messageId']) }
  const commands = [reaction, read, deletion, takenBack, cancellation]
  return { to, first, second, edit, commands, later, never, received: message, written }
}

async function check(talking: Talking, asked: Asked) {
  const { to, first, second, edit, commands, later, never, received, written } = asked
  const settled = (id: string) =>
    until(`${id} to be executed`, async () => {
      const { data } = (await talking.call('GET', `/commands/${id}`)).body
      return data.status !== 'queued' && data
    })
  for (const id of commands) expect((await settled(id)).status).toBe('done')
  await talking.becomes(second, 'sent', 'delivered', 'read')
  // The deletion may have come before the first message was written. Then there is nothing to edit.
  const isCancelled = (await talking.call('GET', `/messages/${first}`)).body.data.status === 'failed'
  const { status, error } = await settled(edit)
  expect([status, error?.code]).toEqual(isCancelled ? ['failed', 'message_failed'] : ['done', undefined])
  await talking.becomes(later, 'sent', 'delivered', 'read')
  expect((await talking.becomes(never, 'failed')).error.code).toBe('cancelled')
  const shown = (await talking.inbox(to)).map(shownOf).filter(text => text !== ON_PHONE)
  expect(shown.filter(text => text === LATER)).toHaveLength(1)
  const inOrder = isCancelled ? ['👍', 'seguinte', ''] : ['errado', 'MESSAGE_EDIT', '👍', 'seguinte', 'REVOKE', '']
  expect(shown.filter(text => text !== LATER)).toEqual(inOrder)

  for (const id of commands) await talking.event('command.done', data => data.id === id)
  await talking.event(isCancelled ? 'command.failed' : 'command.done', data => data.id === edit)
  await talking.event('message.sent', data => data.id === later)
  await talking.event('message.failed', data => data.id === never)
  await talking.event('message.deleted', data => data.id === received.id)
  await talking.event('message.written', data => data.id === written)
  // Delivery is at least once, under one ID.
  const posted = new Map(
    talking.harness.receiver.requests
      .filter(({ path }) => path.endsWith('/all'))
      .map(({ headers, body }) => [String(headers['webhook-id']), JSON.parse(body.toString())]),
  )
  const events = [...posted.values()]
  for (const id of [edit, ...commands]) expect(events.filter(({ data }) => data.id === id)).toHaveLength(1)
  for (const [kind, id] of [
    ['message.sent', later],
    ['message.failed', never],
  ])
    expect(events.filter(({ event, data }) => event === kind && data.id === id)).toHaveLength(1)
  const kinds = events
    .filter(({ data }) => data.id === received.id || data.id === written)
    .map(({ event }) => event)
    .toSorted()
  expect(kinds).toEqual(['message.deleted', 'message.edited', 'message.received', 'message.written'])
  const row = (await talking.call('GET', `/messages/${received.messageId}`)).body.data
  expect([row.text, row.editedAt === null, row.deletedAt === null]).toEqual([null, false, false])
}

test.each(STORES)(
  'kill -9 between any two stanzas: each command is executed once, in order, and reported once, as is each change on WhatsApp, on %s',
  async store => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`kills while commands are executed: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    await using talking = await Talking.open(store)
    for (let kill = 0; kill < KILLS; kill += 1) {
      const chats = Array.from({ length: CHATS }, (_, chat) => `55119876${kill.toString().padStart(2, '0')}00${chat}`)
      const received = await Promise.all(chats.map(to => talking.receive(to, 'pergunta')))
      await talking.harness.network.misbehave({ kind: 'latency', ms: LATENCY_MS })
      const asked = await Promise.all(chats.map((to, index) => ask(talking, to, received[index]!)))
      await sleep(random.between(0, KILL_WITHIN_MS))
      await talking.harness.kill()
      await talking.harness.network.misbehave({ kind: 'latency', ms: 0 })
      await talking.harness.service.admin.untilState(talking.number.id, 'connected')
      for (const chat of asked) await check(talking, chat)
    }
  },
  LONG_TEST_WITHIN_MS,
)
