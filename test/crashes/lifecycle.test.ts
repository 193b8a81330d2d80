import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LinkedHarness } from '../linked-harness.ts'
import { newSeed, Random } from '../rig/random.ts'
import { until } from '../until.ts'

const TRIES = 4
/** The range of the kill: from the scan to the first login, or from the call to the last erased row. */
const WITHIN_MS = 400
const BURST = 20
const TO = '5511987654321'

describe('kill -9 while an instance changes', () => {
  const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
  const random = new Random(seed)
  let harness: LinkedHarness

  beforeAll(async () => {
    console.log(`lifecycle: CRASH_SEED=${seed}`)
    harness = await LinkedHarness.open('sqlite', { networkOptions: [] })
  })

  afterAll(() => harness?.[Symbol.asyncDispose]())

  /** Scans the current QR code. Right after a kill it may still be the code of a dead socket. */
  async function isLinked(id: string): Promise<boolean> {
    const { state, qr } = await harness.service.admin.connection(id)
    if (qr !== null) await harness.network.scanQr(qr).catch(() => undefined)
    return state === 'connecting' || state === 'connected'
  }

  /** Kills the service at a random moment soon after the call, while its work is under way. */
  async function killAfter(asked: Promise<unknown>): Promise<void> {
    const answered = asked.catch(() => undefined)
    await sleep(random.between(0, WITHIN_MS))
    await harness.service.restart('SIGKILL')
    await answered
  }

  /** The events of each message, once every message has at least one. */
  async function untilAllReported(ids: readonly string[]) {
    const told = () => Map.groupBy(harness.receiver.events, ({ data }) => data.id)
    await until('every message to be sent or failed', () => ids.every(id => told().has(id)))
    return ids.map(id => told().get(id) ?? [])
  }

  test(
    'during linking: the number is linked or a new QR code is shown, and it sends in the end',
    async () => {
      for (let n = 0; n < TRIES; n++) {
        const { id, token } = await harness.service.admin.createInstance('whatsapp')
        await harness.service.admin.connect(id)
        await killAfter(harness.network.scanQr(await harness.showQr(id)))
        await until('a link', () => isLinked(id))
        await harness.service.admin.untilState(id, 'connected')
        const instance = harness.service.instance(id, token)
        const sent = await instance.send(TO, `${id} is linked`)
        await until('the text to be read', async () => (await instance.message(sent.id)).status === 'read')
      }
    },
    LONG_TEST_WITHIN_MS,
  )

  test(
    'during deletion: each queued message is reported as sent or failed, then all rows are erased',
    async () => {
      for (let n = 0; n < TRIES; n++) {
        const { instance } = await harness.link()
        const ids: string[] = []
        for (let m = 0; m < BURST; m++) ids.push((await instance.send(TO, `${instance.id} burst ${m}`)).id)
        await harness.service.admin.deleteInstance(instance.id)
        await killAfter(Promise.resolve())
        for (const events of await untilAllReported(ids)) {
          const kinds = new Set(events.map(({ event }) => event))
          expect(kinds.has('message.sent') && kinds.has('message.failed')).toBe(false)
        }
        await until(
          'its rows to go',
          async () => (await harness.database.countRowsOf(instance.id, harness.service.dataDir)) === 0,
        )
      }
    },
    LONG_TEST_WITHIN_MS,
  )

  test(
    'during logout: each queued message is sent or failed, and the instance can be linked again',
    async () => {
      for (let n = 0; n < TRIES; n++) {
        const { instance } = await harness.link()
        const ids: string[] = []
        for (let m = 0; m < BURST; m++) ids.push((await instance.send(TO, `${instance.id} burst ${m}`)).id)
        await harness.service.admin.logout(instance.id)
        await killAfter(Promise.resolve())
        await harness.service.admin.untilState(instance.id, 'logged_out')
        await untilAllReported(ids)
        await harness.service.admin.connect(instance.id)
        await harness.network.scanQr(await harness.showQr(instance.id))
        await harness.service.admin.untilState(instance.id, 'connected')
        const sent = await instance.send(TO, `${instance.id} is back`)
        await until('the text to be read', async () => (await instance.message(sent.id)).status === 'read')
      }
    },
    LONG_TEST_WITHIN_MS,
  )

  test(
    'during a logout and the request to connect after it: the number is unlinked, then another one is linked',
    async () => {
      const { admin } = harness.service
      for (let n = 0; n < TRIES; n++) {
        const { id, phone } = await harness.link()
        await admin.logout(id)
        await admin.connect(id)
        await killAfter(Promise.resolve())
        const { phone: next } = await until('another number to be linked', async () => {
          const { qr } = await admin.connection(id)
          return qr !== null && (await harness.network.scanQr(qr).catch(() => null))
        })
        expect(next).not.toBe(phone)
        expect(await admin.untilState(id, 'connected')).toMatchObject({ phone: next })
        const accounts = await harness.network.accounts()
        expect(accounts.find(account => account.phone === phone)?.linked).toBe(false)
      }
    },
    LONG_TEST_WITHIN_MS,
  )
})
