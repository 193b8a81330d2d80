import { describe, expect, inject, test } from 'vitest'
import { createDatabase, STORES } from '../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { openPreviousVersion } from '../faults/previous-version.ts'
import { startNetwork } from '../network.ts'
import { eventOf, Receiver } from '../receiver.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

const CONTACT = '5511987654321'
const GROUP = '120363000000000777@g.us'
const INCOMING = { stanza: 'message', direction: 'out' } as const
/** The client's receipts for a message. */
const RECEIPTS = ['', 'inactive'].map(type => ({ stanza: 'receipt', direction: 'in', attrs: { type } }) as const)

/** Before this schema step, an incoming message was stored only as an event, under the address of its sender that was known then. */
const WITHOUT_ROWS = '0012'

describe('a message whose receipt was lost, redelivered after kill -9 under another address of its sender', () => {
  test.each(
    STORES.flatMap(store => (['this version', 'the version before'] as const).map(first => [store, first] as const)),
  )(
    'on %s, recorded by %s: is one event',
    async (store, first) => {
      const previous = first === 'this version' ? null : openPreviousVersion(WITHOUT_ROWS)
      const database = await createDatabase(store, inject('postgresUrl'))
      const network = await startNetwork()
      const receiver = await new Receiver().listen()
      const env = { WHATSAPP_URL: network.url, ...database.env }
      const before = new Service({ env, ...(previous && { program: previous.program }) })
      let after: Service | undefined
      try {
        await before.start()
        const { id, token } = await before.admin.createInstance('whatsapp')
        await before.admin.connect(id)
        const qr = await until('a QR code', async () => (await before.admin.connection(id)).qr)
        const { phone } = await network.scanQr(qr)
        await before.admin.untilState(id, 'connected')
        await before.instance(id, token).setWebhook(receiver.url)
        await network.joinGroup(GROUP, [CONTACT, phone])

        for (const when of RECEIPTS) await network.misbehave({ kind: 'rule', rule: { when, do: 'drop' } })
        const hidden = { when: INCOMING, do: { address: 'lid', alternate: false } } as const
        const { rule } = await network.misbehave({ kind: 'rule', rule: hidden })
        const told = (message: string) => receiver.requests.map(eventOf).filter(({ data }) => data.id === message)
        const written = [
          await network.writeAs({ from: CONTACT, to: phone, text: 'alone' }),
          await network.writeAs({ from: CONTACT, to: phone, text: 'in a group', group: GROUP }),
        ]
        for (const { id: message } of written) {
          const [event] = await until('the event', () => told(message).length > 0 && told(message))
          expect(event?.data).toMatchObject({ addressing: 'lid' })
        }
        await network.misbehave({ kind: 'remove_rule', id: rule! })
        const known = await network.writeAs({ from: CONTACT, to: phone, text: 'with number' })
        await until('the number', () => told(known.id)[0]?.data['from'] === CONTACT)
        await before.kill('SIGKILL')

        await network.misbehave({ kind: 'clear' })
        await database.expireLeases()
        after = new Service({
          env: { ...env, ...(!database.url && { ADMIN_KEY: before.adminKey }) },
          dataDir: before.dataDir,
        })
        await after.start()
        await after.admin.untilState(id, 'connected')
        const last = await network.writeAs({ from: CONTACT, to: phone, text: 'the last' })
        await until('the last event', () => told(last.id).length > 0)
        // WhatsApp delivers kept messages first and in order, and each was acknowledged: nothing is left to deliver.
        await after.restart()
        await after.admin.untilState(id, 'connected')
        for (const { id: message } of [...written, known, last]) {
          const ids = receiver.requests.filter(request => eventOf(request).data.id === message)
          expect(new Set(ids.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
        }
        const events = await after.admin.listEvents(id, '?kind=message.received')
        expect(events).toHaveLength(4)
      } finally {
        await after?.dispose()
        await before.dispose()
        await network.close()
        await receiver.close()
        await database.dispose()
        previous?.dispose()
      }
    },
    LONG_TEST_WITHIN_MS,
  )
})
