import { describe, expect, test } from 'vitest'
import { STORES, type StoreKind } from '../database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LinkedHarness } from '../linked-harness.ts'
import { until } from '../until.ts'

const CONTACT = '5511987654321'
const RETRY = { stanza: 'receipt', direction: 'in', attrs: { type: 'retry' } } as const

/** The commit that would record an event fails; that of the keys that decrypt a message does not. */
const REFUSE: Record<StoreKind, string> = {
  sqlite: "create trigger refuse before insert on events begin select raise(abort, 'not now'); end",
  postgres: `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
    create trigger refuse before insert on events for each row execute function refuse()`,
}
const ALLOW: Record<StoreKind, string> = {
  sqlite: 'drop trigger refuse',
  postgres: 'drop trigger refuse on events',
}

describe('kill -9 between the commit of the keys and the commit of the event', () => {
  test.each(STORES.flatMap(store => [100, 300_000, 900_000].map(length => [store, length] as const)))(
    'on %s a text of %i characters is one event, although its sender never sends it again',
    async (store, length) => {
      await using harness = await LinkedHarness.open(store)
      const { network, service, receiver, database } = harness
      const { id, phone } = await harness.link()
      await network.misbehave({ kind: 'rule', rule: { when: RETRY, do: 'drop' } })
      await database.run(REFUSE[store], service.dataDir)

      const text = 'x'.repeat(length)
      const written = await network.writeAs({ from: CONTACT, to: phone, text })
      await until('the refusal', () => service.output.includes('not now'))
      await service.kill('SIGKILL')
      await database.run(ALLOW[store], service.dataDir)
      await database.expireLeases()
      await service.start()
      await service.admin.untilState(id, 'connected')

      const told = () => receiver.events.filter(({ data }) => data.id === written.id)
      await until('the event', () => told().length > 0)
      expect(told()).toHaveLength(1)
      const shown = String(told()[0]!.data['text'])
      expect(shown.length > 0 && text.startsWith(shown)).toBe(true)
    },
    LONG_TEST_WITHIN_MS,
  )
})
