import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createDatabase, type TestDatabase } from '../database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { type Network, startNetwork } from '../network.ts'
import { Receiver } from '../receiver.ts'
import { newSeed, Random } from '../rig/random.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

const TRIES = 4
/** From the scan to the first login; and from the call to the last row. */
const WITHIN_MS = 400
const BURST = 20
const TO = '5511987654321'

describe('kill -9 at the turning points of an instance', () => {
  const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
  const random = new Random(seed)
  let database: TestDatabase
  let network: Network
  let service: Service
  let receiver: Receiver

  beforeAll(async () => {
    console.log(`turning points: CRASH_SEED=${seed}`)
    database = await createDatabase('sqlite', inject('postgresUrl'))
    network = await startNetwork()
    receiver = await new Receiver().listen()
    service = await new Service({ env: { WHATSAPP_URL: network.url, RATE_LIMIT_PER_MINUTE: '100000' } }).start()
  })

  afterAll(async () => {
    await service?.dispose()
    await network?.close()
    await receiver?.close()
    await database?.dispose()
  })

  async function showQr(id: string): Promise<string> {
    return until('a QR code', async () => (await service.admin.connection(id)).qr)
  }

  /** Scans whatever is on show, as a person would: right after a kill that may still be the code of a dead socket. */
  async function isLinked(id: string): Promise<boolean> {
    const { state, qr } = await service.admin.connection(id)
    if (qr !== null) await network.scanQr(qr).catch(() => undefined)
    return state === 'connecting' || state === 'connected'
  }

  async function addConnected() {
    const { id, token } = await service.admin.createInstance('whatsapp')
    await service.admin.connect(id)
    await network.scanQr(await showQr(id))
    await service.admin.untilState(id, 'connected')
    const instance = service.instance(id, token)
    await instance.setWebhook(receiver.url)
    return instance
  }

  /** Asks for it, and kills the service while it is under way. */
  async function killAfter(asked: Promise<unknown>): Promise<void> {
    const answered = asked.catch(() => undefined)
    await sleep(random.between(0, WITHIN_MS))
    await service.restart('SIGKILL')
    await answered
  }

  /** What was told of each message, once something was told of all. */
  async function untilAllTold(ids: readonly string[]) {
    const told = () => Map.groupBy(receiver.events, ({ data }) => data.id)
    await until('every message to be sent or failed', () => ids.every(id => told().has(id)))
    return ids.map(id => told().get(id) ?? [])
  }

  test(
    'while a number is linked: it is linked, or shows a new QR code, and sends in the end',
    async () => {
      for (let n = 0; n < TRIES; n++) {
        const { id, token } = await service.admin.createInstance('whatsapp')
        await service.admin.connect(id)
        await killAfter(network.scanQr(await showQr(id)))
        await until('a link', () => isLinked(id))
        await service.admin.untilState(id, 'connected')
        const instance = service.instance(id, token)
        const sent = await instance.send(TO, `${id} is linked`)
        await until('the text to be read', async () => (await instance.message(sent.id)).status === 'read')
      }
    },
    LONG_TEST_WITHIN_MS,
  )

  test(
    'while an instance is deleted: what was queued is told of once, then the rows go',
    async () => {
      for (let n = 0; n < TRIES; n++) {
        const instance = await addConnected()
        const ids: string[] = []
        for (let m = 0; m < BURST; m++) ids.push((await instance.send(TO, `${instance.id} burst ${m}`)).id)
        await service.admin.deleteInstance(instance.id)
        await killAfter(Promise.resolve())
        for (const events of await untilAllTold(ids)) {
          const kinds = new Set(events.map(({ event }) => event))
          expect(kinds.has('message.sent') && kinds.has('message.failed')).toBe(false)
        }
        await until('its rows to go', async () => (await database.countRowsOf(instance.id, service.dataDir)) === 0)
      }
    },
    LONG_TEST_WITHIN_MS,
  )

  test(
    'while a number is logged out: what was queued fails or was sent, and the instance can be linked again',
    async () => {
      for (let n = 0; n < TRIES; n++) {
        const instance = await addConnected()
        const ids: string[] = []
        for (let m = 0; m < BURST; m++) ids.push((await instance.send(TO, `${instance.id} burst ${m}`)).id)
        await service.admin.logout(instance.id)
        await killAfter(Promise.resolve())
        await service.admin.untilState(instance.id, 'logged_out')
        await untilAllTold(ids)
        await service.admin.connect(instance.id)
        await network.scanQr(await showQr(instance.id))
        await service.admin.untilState(instance.id, 'connected')
        const sent = await instance.send(TO, `${instance.id} is back`)
        await until('the text to be read', async () => (await instance.message(sent.id)).status === 'read')
      }
    },
    LONG_TEST_WITHIN_MS,
  )
})
