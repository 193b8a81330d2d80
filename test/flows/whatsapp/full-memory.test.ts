import { test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** More messages than an instance keeps in memory. */
const MESSAGES = 2_200
/** More messages than are sent concurrently. */
const STARTED_ANEW = 60

test.each(ONE_STORE)(
  'on %s, an instance whose memory is full of messages to new recipients continues to send after a cut',
  async kind => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link()
    // No number is looked up. Every message waits, in memory up to the limit.
    const { rule } = await harness.network.misbehave({
      kind: 'rule',
      rule: { when: { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } }, do: 'drop' },
    })
    const accepted = await Promise.all(
      Array.from({ length: MESSAGES }, (_, n) => harness.accept(id, `5521${String(n).padStart(9, '0')}`, `text ${n}`)),
    )
    await until('look-ups of all recipients that are tried concurrently', async () => {
      const { rules } = await harness.network.scenario()
      return (rules.find(one => one.id === rule)?.fitted ?? 0) >= 500
    })
    // On the next link only the sender itself can cause another read.
    await harness.network.misbehave({ kind: 'cut', account: phone })
    await harness.reaches(id, 'reconnecting')
    await harness.network.misbehave({ kind: 'clear' })
    await harness.reaches(id, 'connected')
    // The first message is sent, and one after those that are sent concurrently.
    for (const { id: message } of [accepted[0], accepted[STARTED_ANEW]].filter(one => one !== undefined)) {
      await harness.becomes(id, message, 'sent')
    }
  },
  LONG_TEST_WITHIN_MS,
)
