import { setTimeout as sleep } from 'node:timers/promises'
import type { Order } from '@pombal/simulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StoreKind } from '../databases/database.ts'
import { ONE_STORE } from '../databases/one-store.ts'
import { LinkedHarness } from '../linked-harness.ts'
import { newSeed, Random } from '../rig/random.ts'
import { until } from '../until.ts'

/** Long enough for WhatsApp's answer to a code, and for the commits after it. */
const KILL_WITHIN_MS = 250
const SETTLED_WITHIN_MS = 110_000
/** For tests that share a service. The tests that wait for a minute run concurrently with them. */
const ONE_BY_ONE = { concurrent: false }

type LinkingFailure = Extract<Order, { kind: 'fail_linking' }>['how']
type Row = readonly [situation: string, how: LinkingFailure, by: 'qr' | 'code', state: string, cause: string]

/** The rows of "Linking" in docs/whatsapp-situations.md that end without a linked number. */
const ROWS: readonly Row[] = [
  ['a passkey is wanted after the scan', 'passkey', 'qr', 'unlinked', 'passkey_required'],
  ['a passkey is wanted after the pairing code', 'passkey', 'code', 'unlinked', 'passkey_required'],
  ['WhatsApp keeps asking for new codes', 'refresh', 'qr', 'unlinked', 'linking_unfinished'],
  ['the device is refused a pairing code', 'refuse_code', 'code', 'unlinked', 'identity_rejected'],
  ['the device is refused a QR code', 'refuse_device', 'qr', 'unlinked', 'identity_rejected'],
  ['the version is refused', 'refuse_version', 'qr', 'unlinked', 'version_refused'],
  ['the phone signs with another secret', 'bad_signature', 'qr', 'unlinked', 'linking_unfinished'],
  ['WhatsApp answers the scan with 401', 'unauthorized', 'qr', 'unlinked', 'linking_unfinished'],
  ['the account has too many devices', 'device_limit', 'code', 'unlinked', 'device_limit'],
]

/** This failure ends the linking after a minute, like a code that nobody scans. */
const PHONE_OFFLINE: Row = [
  'the phone goes offline after the pairing code',
  'phone_offline',
  'code',
  'unlinked',
  'phone_offline',
]

const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
let numbers = 0
const newNumber = () => `551191234567${numbers++}`

/** A service that is killed at random moments while it links numbers. */
class Scene implements AsyncDisposable {
  readonly harness: LinkedHarness
  readonly #random = new Random(seed)

  private constructor(harness: LinkedHarness) {
    this.harness = harness
  }

  static async open(store: StoreKind): Promise<Scene> {
    console.log(`kills during failures of linking: CRASH_SEED=${seed}`)
    return new Scene(await LinkedHarness.open(store))
  }

  async kill(): Promise<void> {
    await sleep(this.#random.between(0, KILL_WITHIN_MS))
    await this.harness.kill()
  }

  /** Answers every code that is shown, and kills the service after the first answer, until the instance rests. */
  async untilAtRest(id: string, phone: string | undefined, state: string, cause: string) {
    const { harness } = this
    let answered: string | null = null
    const rest = async () => {
      const connection = await harness.service.admin.connection(id)
      if (connection.state === state && connection.cause === cause && connection.qr === null) return connection
      const code = connection.pairingCode ?? connection.qr
      if (connection.cause === 'linking_interrupted') await harness.service.admin.connect(id, phone)
      if (code === null || code === answered) return null
      const isFirst = answered === null
      answered = code
      // The simulated phone reports the failure.
      const answering = phone ? harness.network.typePairingCode(code, phone) : harness.network.scanQr(code, id)
      const settled = answering.catch(() => undefined)
      if (isFirst) await this.kill()
      await settled
      return null
    }
    return until(`${id} to rest as ${cause}`, rest, SETTLED_WITHIN_MS)
  }

  /** Expects that a new request links the number, and that nothing of the failure is left. */
  async linksInTheEnd(id: string, token: string): Promise<void> {
    const { harness } = this
    const { admin } = harness.service
    await harness.network.misbehave({ kind: 'clear' })
    await admin.connect(id)
    await until('a scan of a code that is still shown', async () => {
      const { qr } = await admin.connection(id)
      return qr && harness.network.scanQr(qr, id).catch(() => null)
    })
    const { phone } = await admin.untilState(id, 'connected')
    await harness.sendAndRead({ id, phone: phone ?? '', instance: harness.service.instance(id, token) })
  }

  async fails([, how, by, state, cause]: Row): Promise<void> {
    const { harness } = this
    const { id, token } = await harness.service.admin.createInstance('whatsapp')
    const phone = by === 'code' ? newNumber() : undefined
    await harness.network.misbehave({ kind: 'fail_linking', how })
    await harness.service.admin.connect(id, phone)
    await this.kill()
    await this.untilAtRest(id, phone, state, cause)
    await harness.kill()
    expect(await harness.service.admin.connection(id)).toMatchObject({ state, cause, qr: null, pairingCode: null })
    await this.linksInTheEnd(id, token)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.harness[Symbol.asyncDispose]()
  }
}

describe.concurrent.each(ONE_STORE)(
  'a failure of linking, with kills at the request and after the code, on %s',
  store => {
    let scene: Scene
    beforeAll(async () => {
      scene = await Scene.open(store)
    })
    afterAll(async () => scene?.[Symbol.asyncDispose]())

    test.each(ROWS)('%s', ONE_BY_ONE, (...row) => scene.fails(row))

    test.each(['qr', 'code'] as const)('WhatsApp asks for a new code: %s', ONE_BY_ONE, async by => {
      const { harness } = scene
      const { id, token } = await harness.service.admin.createInstance('whatsapp')
      const phone = by === 'code' ? newNumber() : undefined
      await harness.network.misbehave({ kind: 'fail_linking', how: 'refresh', count: 1 })
      await harness.service.admin.connect(id, phone)
      await scene.kill()
      await scene.untilAtRest(id, phone, 'connected', 'connected')
      const instance = harness.service.instance(id, token)
      const { phone: linked } = await harness.service.admin.connection(id)
      await harness.sendAndRead({ id, phone: linked ?? '', instance })
    })

    test('the first login after linking is refused', ONE_BY_ONE, async () => {
      const { harness } = scene
      const { id, token } = await harness.service.admin.createInstance('whatsapp')
      await harness.network.misbehave({ kind: 'refuse_logins', reason: '401', count: 100 })
      await harness.service.admin.connect(id)
      await scene.kill()
      await scene.untilAtRest(id, undefined, 'logged_out', 'linking_unfinished')
      await scene.linksInTheEnd(id, token)
    })

    test('the session is opened elsewhere', ONE_BY_ONE, async () => {
      const { harness } = scene
      const number = await harness.link()
      await harness.network.misbehave({ kind: 'stream_error', account: number.phone, conflict: 'replaced' })
      await scene.kill()
      const { admin } = harness.service
      // Before the kill Pombal may have recorded the reason or not.
      const { state, cause } = await until('it to settle', async () => {
        const connection = await admin.connection(number.id)
        return (connection.state === 'stopped' || connection.state === 'connected') && connection
      })
      if (state === 'stopped') expect(cause).toBe('replaced')
      await admin.connect(number.id)
      await admin.untilState(number.id, 'connected')
      await harness.sendAndRead({ ...number, instance: harness.service.instance(number.id, number.instance.token) })
    })
  },
)

describe.concurrent.each(ONE_STORE)('a failure that takes a minute, with a kill before it, on %s', store => {
  test(PHONE_OFFLINE[0], async () => {
    await using scene = await Scene.open(store)
    await scene.fails(PHONE_OFFLINE)
  })

  test('nobody scans in time', async () => {
    await using scene = await Scene.open(store)
    const { harness } = scene
    const { admin } = harness.service
    const { id, token } = await admin.createInstance('whatsapp')
    await harness.network.misbehave({ kind: 'qr_codes', count: 1 })
    await admin.connect(id)
    await harness.showQr(id)
    await scene.kill()
    const expired = async () => (await harness.service.admin.connection(id)).cause === 'code_expired'
    await until('the code to expire', expired, SETTLED_WITHIN_MS)
    await harness.kill()
    const { state, cause, qr } = await harness.service.admin.connection(id)
    expect({ state, cause, qr }).toEqual({ state: 'unlinked', cause: 'code_expired', qr: null })
    await harness.network.misbehave({ kind: 'qr_codes', count: 6 })
    await scene.linksInTheEnd(id, token)
  })
})
