import { expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

const CONTACT = '5511987654321'
const SET_BACK_MS = 10 * 60_000

test.each(ONE_STORE)("on %s, a clock that is set back does not delay a message's next attempt", async kind => {
  await using harness = await WhatsappHarness.open({}, kind)
  let offsetMs = 0
  const settings = { messageTtlMs: 86_400_000, ackTimeoutMs: 500 }
  const { id } = await harness.link({ settings, now: () => Date.now() + offsetMs })
  const when = { stanza: 'message', direction: 'in', times: 1 } as const
  await harness.network.misbehave({ kind: 'rule', rule: { when, do: 'drop' } })
  const { id: message } = await harness.accept(id, CONTACT, 'written in vain at first')
  await until('it to have been tried in vain', () => harness.log.some(line => line.includes('message.unanswered')))
  offsetMs = -SET_BACK_MS
  await harness.becomes(id, message, 'sent')
  expect(await harness.network.inbox(CONTACT)).toHaveLength(1)
})
