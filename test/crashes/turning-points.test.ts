import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LinkedHarness } from '../linked-harness.ts'
import { newSeed, Random } from '../rig/random.ts'
import { until } from '../until.ts'

const TRIES = 4
/** From the scan to the first login; and from the call to the last row. */
const WITHIN_MS = 400
const BURST = 20
const TO = '5511987654321'

describe('kill -9 at the turning points of an instance', () => {
  const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
  const random = new Random(seed)
  let stage: LinkedHarness

  beforeAll(async () => {
    console.log(`turning points: CRASH_SEED=${seed}`)
    stage = await LinkedHarness.open('sqlite', { networkOptions: [] })
  })

  afterAll(() => stage?.[Symbol.asyncDispose]())

  /** Scans whatever is on show, as a person would: right after a kill that may still be the code of a dead socket. */
  async function isLinked(id: string): Promise<boolean> {
    const { state, qr } = await stage.service.admin.connection(id)
    if (qr !== null) await stage.network.scanQr(qr).catch(() => undefined)
    return state === 'connecting' || state === 'connected'
  }

  /** Asks for it, and kills the service at a random moment while it is under way. */
  async function killAfter(asked: Promise<unknown>): Promise<void> {
    const answered = asked.catch(() => undefined)
    await sleep(random.between(0, WITHIN_MS))
    await stage.service.restart('SIGKILL')
    await answered
  }

  /** What was told of each message, once something was told of all. */
  async function untilAllTold(ids: readonly string[]) {
    const told = () => Map.groupBy(stage.receiver.events, ({ data }) => data.id)
    await until('every message to be sent or failed', () => ids.every(id => told().has(id)))
    return ids.map(id => told().get(id) ?? [])
  }

  test(
    'while a number is linked: it is linked, or shows a new QR code, and sends in the end',
    async () => {
      for (let n = 0; n < TRIES; n++) {
        const { id, token } = await stage.service.admin.createInstance('whatsapp')
        await stage.service.admin.connect(id)
        await killAfter(stage.network.scanQr(await stage.showQr(id)))
        await until('a link', () => isLinked(id))
        await stage.service.admin.untilState(id, 'connected')
        const instance = stage.service.instance(id, token)
        const sent = await instance.send(TO, `${id} is linked`)
        await until('the text to be read', async () => (await instance.message(sent.id)).status === 'read')
      }
    },
    LONG_TEST_WITHIN_MS,
  )

  test(
    'while an instance is deleted: what was queued is reported once, then the rows go',
    async () => {
      for (let n = 0; n < TRIES; n++) {
        const { instance } = await stage.link()
        const ids: string[] = []
        for (let m = 0; m < BURST; m++) ids.push((await instance.send(TO, `${instance.id} burst ${m}`)).id)
        await stage.service.admin.deleteInstance(instance.id)
        await killAfter(Promise.resolve())
        for (const events of await untilAllTold(ids)) {
          const kinds = new Set(events.map(({ event }) => event))
          expect(kinds.has('message.sent') && kinds.has('message.failed')).toBe(false)
        }
        await until(
          'its rows to go',
          async () => (await stage.database.countRowsOf(instance.id, stage.service.dataDir)) === 0,
        )
      }
    },
    LONG_TEST_WITHIN_MS,
  )

  test(
    'while a number is logged out: what was queued fails or was sent, and the instance can be linked again',
    async () => {
      for (let n = 0; n < TRIES; n++) {
        const { instance } = await stage.link()
        const ids: string[] = []
        for (let m = 0; m < BURST; m++) ids.push((await instance.send(TO, `${instance.id} burst ${m}`)).id)
        await stage.service.admin.logout(instance.id)
        await killAfter(Promise.resolve())
        await stage.service.admin.untilState(instance.id, 'logged_out')
        await untilAllTold(ids)
        await stage.service.admin.connect(instance.id)
        await stage.network.scanQr(await stage.showQr(instance.id))
        await stage.service.admin.untilState(instance.id, 'connected')
        const sent = await instance.send(TO, `${instance.id} is back`)
        await until('the text to be read', async () => (await instance.message(sent.id)).status === 'read')
      }
    },
    LONG_TEST_WITHIN_MS,
  )
})
