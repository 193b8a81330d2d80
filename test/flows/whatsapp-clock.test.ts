import { expect, test } from 'vitest'
import { STORES } from '../database.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

const CONTACT = '5511987654321'
const SET_BACK_MS = 10 * 60_000

test.each(STORES)(
  'on %s, a message that waits for its next try is not kept longer by a clock that is set back',
  async kind => {
    await using stage = await Stage.open({}, kind)
    let offsetMs = 0
    const settings = { messageTtlMs: 86_400_000, ackTimeoutMs: 500 }
    const { id } = await stage.link({ settings, now: () => Date.now() + offsetMs })
    const when = { stanza: 'message', direction: 'in', times: 1 } as const
    await stage.network.misbehave({ kind: 'rule', rule: { when, do: 'drop' } })
    const { id: message } = await stage.accept(id, CONTACT, 'written in vain at first')
    await until('it to have been tried in vain', () => stage.log.some(line => line.includes('message.unanswered')))
    offsetMs = -SET_BACK_MS
    await stage.becomes(id, message, 'sent')
    expect(await stage.network.inbox(CONTACT)).toHaveLength(1)
  },
)
