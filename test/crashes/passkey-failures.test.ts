import { join } from 'node:path'
import type { Order } from '@pombal/simulator'
import { expect, test } from 'vitest'
import { ONE_STORE } from '../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LinkedHarness } from '../linked-harness.ts'
import { until } from '../until.ts'
import { Ceremony, hold, REFUSED, type Reached } from './passkey-ceremony.ts'

type Play = Extract<Order, { kind: 'play_passkey' }>['how']

const play = (how: Play): Order => ({ kind: 'play_passkey', how })

/** A row of "Linking" in docs/whatsapp-situations.md with a failure of the passkey that the simulated network plays. */
interface Situation {
  /** The kill comes once this is reached. */
  at: Reached
  plays: Order[]
  /** At the kill only. */
  orders?: Order[]
  /** In each of the two attempts. */
  wrongAnswers?: number
  /** The person does nothing at this step. */
  ignores?: 'assertion' | 'code'
  /** The end of the next attempt, which meets the same situation. Default: the number is linked. */
  cause?: string
}

const SITUATIONS: [name: string, situation: Situation][] = [
  ['WhatsApp asks without options', { at: 'asked', plays: [play('no_options')] }],
  ['WhatsApp asks again before the answer', { at: 'asked', plays: [play('repeated')] }],
  ['the keys of the phone come before the result', { at: 'answered', plays: [play('early')] }],
  ['WhatsApp refuses every answer', { at: 'answered', plays: [play('refused')], cause: 'passkey_refused' }],
  ['nobody answers in time', { at: 'asked', plays: [play('expires')], ignores: 'assertion', cause: 'passkey_expired' }],
  ['the phone is silent after the answer', { at: 'answered', plays: [play('silence')], cause: 'linking_unfinished' }],
  [
    'the phone does not confirm',
    { at: 'held', orders: [hold('in', 3)], plays: [play('unfinished')], cause: 'linking_unfinished' },
  ],
  [
    'the phone cannot read the request',
    { at: 'held', orders: [hold('in', 3)], plays: [play('wrong_code')], cause: 'passkey_refused' },
  ],
  [
    'the codes differ, and nobody confirms',
    { at: 'code', wrongAnswers: 1, plays: [play('wrong_code')], ignores: 'code', cause: 'passkey_expired' },
  ],
]

test.each(ONE_STORE)(
  'on %s, a kill -9 in the middle of any failure with a passkey changes neither its end nor the next attempt',
  async store => {
    const NODE_OPTIONS = `--import=${join(import.meta.dirname, 'short-steps.js')}`
    await using harness = await LinkedHarness.open(store, { env: { WHATSAPP_PASSKEY: 'on', NODE_OPTIONS } })
    const { service } = harness
    const play = async (orders: Order[]) => {
      await harness.network.misbehave({ kind: 'clear' })
      for (const order of orders) await harness.network.misbehave(order)
    }
    const ended: { ceremony: Ceremony; name: string; cause: string }[] = []
    for (const [name, { at, plays, orders = [], wrongAnswers = 0, ignores, cause }] of SITUATIONS) {
      const { id } = await service.admin.createInstance('whatsapp', name)
      const ceremony = new Ceremony(harness, id)
      await service.admin.connect(id)
      await play([...plays, ...orders])
      ceremony.wrongAnswers = wrongAnswers
      await ceremony.run(at)
      await harness.kill()
      await play(plays)
      ceremony.wrongAnswers = wrongAnswers
      const end = await ceremony.untilEnd(({ state }) => state === 'connected' || state === 'unlinked', ignores)
      expect(end, name).toMatchObject({ state: cause ? 'unlinked' : 'connected', cause: cause ?? 'connected' })
      if (cause) ended.push({ ceremony, name, cause })
    }
    // The end of an attempt and of the request for it are two commits. A kill between them leads to another attempt.
    const requests = "select instance_id from connections where goal <> 'idle' and state <> 'connected'"
    const isDone = async () => (await harness.database.read(requests, service.dataDir)).length === 0
    await until('the requests to end', isDone)
    await harness.kill()
    await play([])
    for (const { ceremony, name, cause } of ended) {
      const { id } = ceremony
      expect(await service.admin.connection(id), name).toMatchObject({
        state: 'unlinked',
        cause,
        qr: null,
        passkey: null,
      })
      await service.admin.connect(id)
      await ceremony.run('linked')
    }
    await endsAtOnceByLogout(harness)
  },
  LONG_TEST_WITHIN_MS,
)

/** A logout while the code to compare is shown, with a kill right after the call. */
async function endsAtOnceByLogout(harness: LinkedHarness): Promise<void> {
  const { service } = harness
  const { id } = await service.admin.createInstance('whatsapp', 'Logout')
  const ceremony = new Ceremony(harness, id)
  await service.admin.connect(id)
  await ceremony.run('code', [REFUSED])
  await service.admin.logout(id)
  await harness.kill()
  await until('the logout', async () => {
    const { state, cause, passkey } = await service.admin.connection(id)
    return state === 'unlinked' && cause === 'never_linked' && passkey === null
  })
  await service.admin.connect(id)
  await ceremony.run('linked')
}
