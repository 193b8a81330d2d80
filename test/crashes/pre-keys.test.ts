import { describe, expect, test } from 'vitest'
import { STORES, type StoreKind } from '../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LinkedHarness } from '../linked-harness.ts'
import { until } from '../until.ts'

const CONTACT = '5511987654321'

/** A trigger that fails every commit that stores a new pre-key, and no other commit. */
const REFUSE: Record<StoreKind, string> = {
  sqlite: `create trigger refuse before insert on credentials when new.type = 'pre-key'
    begin select raise(abort, 'not now'); end`,
  postgres: `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
    create trigger refuse before insert on credentials for each row when (new.type = 'pre-key') execute function refuse()`,
}
const ALLOW: Record<StoreKind, string> = {
  sqlite: 'drop trigger refuse',
  postgres: 'drop trigger refuse on credentials',
}

describe('kill -9 before the commit of a pre-key that a resend request carries', () => {
  test.each(STORES)(
    'on %s: the sender did not get that key, and its next messages can be decrypted',
    async store => {
      // Without the harness's default option, so the network reports the true number of pre-keys.
      await using harness = await LinkedHarness.open(store, { networkOptions: [] })
      const { network, service, receiver, database } = harness
      const received = (text: string) => receiver.events.some(({ data }) => data['text'] === text)
      const { id, phone } = await harness.link()
      await network.writeAs({ from: CONTACT, to: phone, text: 'before' })
      await until('the first event', () => received('before'))

      // The second request for a message brings a pre-key.
      const twice = { stanza: 'message', direction: 'out', contact: CONTACT, times: 2 } as const
      await network.misbehave({ kind: 'rule', rule: { when: twice, do: 'garble' } })
      await database.run(REFUSE[store], service.dataDir)
      await network.writeAs({ from: CONTACT, to: phone, text: 'asked for' })
      await until('the refusal', () => service.output.includes('not now'))
      await service.kill('SIGKILL')
      await database.run(ALLOW[store], service.dataDir)
      await database.expireLeases()
      await service.start()
      await service.admin.untilState(id, 'connected')

      await until('the event', () => received('asked for'))
      const onPhone = (await network.inbox(phone)).find(({ text }) => text === 'asked for')
      expect(onPhone?.askedFor).toBe(1)
    },
    LONG_TEST_WITHIN_MS,
  )
})
