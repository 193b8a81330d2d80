import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { newSeed, Random } from '../../rig/random.ts'
import { until } from '../../until.ts'
import { type Answered, Talking } from './harness.ts'

/** `COMMAND_KILLS=20` for a longer run. */
const KILLS = Number(process.env['COMMAND_KILLS'] ?? 4)
/** The commands of one run take about half of this. */
const KILL_WITHIN_MS = 600

const ON_PHONE = 'escrita no celular'

/** What a phone shows of a message or command. */
const shownOf = ({ text, details }: { text: string; details?: { [name: string]: { text?: string; type?: string } } }) =>
  details?.['reactionMessage']?.text ?? details?.['protocolMessage']?.type ?? text

test(
  'kill -9 between any two stanzas: each command is executed once, in order, and reported once, as is each change on WhatsApp',
  async () => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`kills while commands are executed: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    await using talking = await Talking.open()
    const { service } = talking.harness
    for (let kill = 0; kill < KILLS; kill += 1) {
      const to = `55119876${kill.toString().padStart(2, '0')}001`
      const received = await talking.receive(to, 'pergunta')
      const commands: string[] = []
      const note = ({ status, body }: Answered) => {
        expect(status).toBe(202)
        commands.push(body.data.id)
      }
      const first = await talking.send({ to, text: 'errado' })
      note(await talking.call('PATCH', `/messages/${first}`, { text: 'certo' }))
      note(await talking.call('PUT', `/messages/${received['messageId']}/reaction`, { emoji: '👍' }))
      note(await talking.call('POST', `/messages/${received['messageId']}/read`))
      const second = await talking.send({ to, text: 'seguinte', quote: first })
      note(await talking.call('DELETE', `/messages/${first}`))
      const { network } = talking.harness
      const { phone } = talking.number
      await network.writeAs({ from: to, to: phone, edit: { id: received.id, text: 'outra pergunta' } })
      const written = await network.writeAsOwner({ phone, to, text: ON_PHONE })
      await network.writeAs({ from: to, to: phone, delete: received.id })
      await sleep(random.between(0, KILL_WITHIN_MS))
      await service.kill('SIGKILL')
      await service.start()
      await service.admin.untilState(talking.number.id, 'connected')
      for (const id of commands)
        await until(`${id} to be done after kill ${kill}`, async () => {
          const { body } = await talking.call('GET', `/commands/${id}`)
          return body.data.status === 'done'
        })
      await talking.becomes(second, 'sent', 'delivered', 'read')
      const firstIsGone = (await talking.call('GET', `/messages/${first}`)).body.data.status === 'failed'
      const shown = (await talking.inbox(to)).map(shownOf).filter(text => text !== ON_PHONE)
      // The deletion may have come before the first message was written.
      expect(shown).toEqual(firstIsGone ? ['👍', 'seguinte'] : ['errado', 'MESSAGE_EDIT', '👍', 'seguinte', 'REVOKE'])
      for (const id of commands) await talking.event('command.done', data => data.id === id)
      const ids = talking.harness.receiver.requests
        .filter(({ path }) => path.endsWith('/all'))
        .map(({ headers, body }) => `${headers['webhook-id']} ${JSON.parse(body.toString()).data.id}`)
      for (const id of commands) expect(new Set(ids.filter(line => line.endsWith(id))).size).toBe(1)
      await talking.event('message.deleted', data => data.id === received.id)
      await talking.event('message.written', data => data.id === written.id)
      const about = new Map(
        talking.harness.receiver.requests
          .filter(({ path }) => path.endsWith('/all'))
          .map(({ headers, body }) => [String(headers['webhook-id']), JSON.parse(body.toString())]),
      )
      const kinds = [...about.values()]
        .filter(({ data }) => data.id === received.id || data.id === written.id)
        .map(({ event }) => event)
      expect(kinds.toSorted()).toEqual(['message.deleted', 'message.edited', 'message.received', 'message.written'])
      const row = (await talking.call('GET', `/messages/${received['messageId']}`)).body.data
      expect([row.text, row.editedAt === null, row.deletedAt === null]).toEqual([null, false, false])
    }
  },
  LONG_TEST_WITHIN_MS,
)
