import { describe, expect, test } from 'vitest'
import { STORES } from '../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { ALLOW_EVENTS, LinkedHarness, REFUSE_EVENTS } from '../linked-harness.ts'
import { until } from '../until.ts'

const CONTACT = '5511987654321'
const RETRY = { stanza: 'receipt', direction: 'in', attrs: { type: 'retry' } } as const

describe('kill -9 between the commit of the keys and the commit of the event', () => {
  test.each(STORES.flatMap(store => [100, 300_000, 900_000].map(length => [store, length] as const)))(
    'on %s a text of %i characters is one event, although its sender never sends it again',
    async (store, length) => {
      await using harness = await LinkedHarness.open(store)
      const { network, service, receiver, database } = harness
      const { id, phone } = await harness.link()
      await network.misbehave({ kind: 'rule', rule: { when: RETRY, do: 'drop' } })
      await database.run(REFUSE_EVENTS[store], service.dataDir)

      const text = 'x'.repeat(length)
      const written = await network.writeAs({ from: CONTACT, to: phone, text })
      await until('the refusal', () => service.output.includes('not now'))
      await service.kill('SIGKILL')
      await database.run(ALLOW_EVENTS[store], service.dataDir)
      await database.expireLeases()
      await service.start()
      await service.admin.untilState(id, 'connected')

      const events = () => receiver.events.filter(({ data }) => data.id === written.id)
      await until('the event', () => events().length > 0)
      expect(events()).toHaveLength(1)
      const shown = String(events()[0]!.data['text'])
      expect(shown.length > 0 && text.startsWith(shown)).toBe(true)
    },
    LONG_TEST_WITHIN_MS,
  )
})
