import { test } from 'vitest'
import { STORES } from '../database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

/** More than an instance keeps in memory. */
const MESSAGES = 2_200
/** More than are tried at once. */
const STARTED_ANEW = 60

test.each(STORES)(
  'on %s, after a cut while memory is full of messages to new recipients the next socket goes on with them',
  async kind => {
    await using stage = await Stage.open({}, kind)
    const { id, phone } = await stage.link()
    // No number is looked up. Every message waits, in memory up to the limit.
    const { rule } = await stage.network.misbehave({
      kind: 'rule',
      rule: { when: { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } }, do: 'drop' },
    })
    const accepted = await Promise.all(
      Array.from({ length: MESSAGES }, (_, n) => stage.accept(id, `5521${String(n).padStart(9, '0')}`, `text ${n}`)),
    )
    await until('look-ups of all recipients that are tried at once', async () => {
      const { rules } = await stage.network.scenario()
      return (rules.find(one => one.id === rule)?.fitted ?? 0) >= 500
    })
    // On the next link only the sender itself can cause another read.
    await stage.network.misbehave({ kind: 'cut', account: phone })
    await stage.reaches(id, 'reconnecting')
    await stage.network.misbehave({ kind: 'clear' })
    await stage.reaches(id, 'connected')
    // Later messages follow too: memory is freed for those that did not fit.
    for (const { id: message } of [accepted[0], accepted[STARTED_ANEW]].filter(one => one !== undefined)) {
      await stage.becomes(id, message, 'sent')
    }
  },
  LONG_TEST_WITHIN_MS,
)
