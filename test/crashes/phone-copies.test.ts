import { describe, expect, test } from 'vitest'
import type { StoreKind } from '../databases/database.ts'
import { ONE_STORE } from '../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { ALLOW_EVENTS, LinkedHarness, REFUSE_EVENTS } from '../linked-harness.ts'
import { eventOf } from '../receiver.ts'
import { until } from '../until.ts'

const CONTACT = '5511987654321'
const GROUP = '120363000000000777@g.us'
const ACKNOWLEDGEMENT = { stanza: 'ack', direction: 'in', attrs: { class: 'message' } } as const

/** A linked number, on a phone that sends copies of messages that WhatsApp delivers without content. */
async function openHarness(store: StoreKind) {
  const harness = await LinkedHarness.open(store)
  const { network, service, receiver, database } = harness
  const { id, phone } = await harness.link()
  await network.misbehave({ kind: 'phone_copies' })
  return {
    network,
    service,
    phone,
    run: (statement: Record<StoreKind, string>) => database.run(statement[store], service.dataDir),
    /** A kill may cause an event to be posted again, under the same ID. */
    events: (message: string) => {
      const byId = new Map(receiver.requests.map(request => [request.headers['webhook-id'], eventOf(request)]))
      return [...byId.values()].filter(({ data }) => data.id === message)
    },
    async kill() {
      await service.kill('SIGKILL')
      await database.expireLeases()
    },
    async start() {
      await service.start()
      await service.admin.untilState(id, 'connected')
    },
    [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose](),
  }
}

describe('a message that WhatsApp delivers without content and the phone sends as a copy', () => {
  test.each(ONE_STORE)(
    'on %s, kill -9 before the event is recorded: it is one event, in its chat',
    async store => {
      await using harness = await openHarness(store)
      const { network, service, phone } = harness
      await network.joinGroup(GROUP, [CONTACT, phone])
      await harness.run(REFUSE_EVENTS)
      const alone = await network.writeAs({ from: CONTACT, to: phone, text: 'alone', unavailable: true })
      const group = { from: CONTACT, to: phone, text: 'in a group', group: GROUP, unavailable: true }
      const written = [alone, await network.writeAs(group)]
      await until('the refusal', () => service.output.includes('not now'))
      await harness.kill()
      await harness.run(ALLOW_EVENTS)
      await harness.start()
      for (const { id } of written) await until('the event', () => harness.events(id).length > 0)
      expect(harness.events(alone.id)[0]?.data).toMatchObject({ from: CONTACT, chat: CONTACT, text: 'alone' })
      expect(harness.events(written[1]!.id)[0]?.data).toMatchObject({ from: CONTACT, group: GROUP, text: 'in a group' })
      for (const { id } of written) expect(harness.events(id)).toHaveLength(1)
    },
    LONG_TEST_WITHIN_MS,
  )

  test.each(ONE_STORE)(
    'on %s, kill -9 as soon as WhatsApp has the acknowledgement: the copy was requested before',
    async store => {
      await using harness = await openHarness(store)
      const { network, phone } = harness
      const applied = async (rule: number | undefined) =>
        (await network.scenario()).rules.find(({ id }) => id === rule)?.applied ?? 0
      const { rule: acknowledged } = await network.misbehave({
        kind: 'rule',
        rule: { when: ACKNOWLEDGEMENT, do: { delayMs: 0 } },
      })
      const written = await network.writeAs({ from: CONTACT, to: phone, text: 'alone', unavailable: true })
      await until('the acknowledgement', async () => (await applied(acknowledged)) > 0)
      await harness.kill()
      await harness.start()
      await until('the event', () => harness.events(written.id).length > 0)
      expect(harness.events(written.id)).toHaveLength(1)
    },
    LONG_TEST_WITHIN_MS,
  )
})
