import { expect, test } from 'vitest'
import { STORES } from '../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { ALLOW_EVENTS, LinkedHarness, REFUSE_EVENTS } from '../linked-harness.ts'
import type { LogLine } from '../service.ts'
import { until } from '../until.ts'

const CONTACT = '5511987654321'
const RETRY = { stanza: 'receipt', direction: 'in', attrs: { type: 'retry' } } as const

const LENGTHS = [100, 300_000, 900_000]

test.each(STORES)(
  'on %s, kill -9 between the commit of the keys and the commit of the event: a text is one event, although its sender never sends it again',
  async store => {
    await using harness = await LinkedHarness.open(store)
    const { network, service, receiver, database } = harness
    const numbers = await Promise.all(LENGTHS.map(async length => ({ ...(await harness.link()), length })))
    await network.misbehave({ kind: 'rule', rule: { when: RETRY, do: 'drop' } })
    await database.run(REFUSE_EVENTS[store], service.dataDir)

    const written = await Promise.all(
      numbers.map(async ({ id, phone, length }) => {
        const text = 'x'.repeat(length)
        const message = await network.writeAs({ from: CONTACT, to: phone, text })
        const isRefused = (line: LogLine) => line['instanceId'] === id && JSON.stringify(line).includes('not now')
        await until(`the refusal of ${length} characters`, () => service.logLines.some(isRefused))
        return { instanceId: id, id: message.id, text }
      }),
    )
    await service.kill('SIGKILL')
    await database.run(ALLOW_EVENTS[store], service.dataDir)
    await database.expireLeases()
    await service.start()

    for (const { instanceId, id, text } of written) {
      await service.admin.untilState(instanceId, 'connected')
      const events = () => receiver.events.filter(({ data }) => data.id === id)
      await until(`the event of ${text.length} characters`, () => events().length > 0)
      expect(events()).toHaveLength(1)
      const shown = String(events()[0]!.data['text'])
      expect(shown.length > 0 && text.startsWith(shown)).toBe(true)
    }
  },
  LONG_TEST_WITHIN_MS,
)
