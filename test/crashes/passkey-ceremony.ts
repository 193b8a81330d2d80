import type { Order } from '@pombal/simulator'
import { expect } from 'vitest'
import type { PasskeyRequest } from '../../src/domain/connection/passkey.ts'
import type { LinkedHarness } from '../linked-harness.ts'
import { noteBody } from '../logs/log-capture.ts'
import { TestPasskey } from '../passkey.ts'
import { until } from '../until.ts'

export type Reached = 'asked' | 'answered' | 'held' | 'code' | 'confirmed'

type Connection = Awaited<ReturnType<LinkedHarness['service']['admin']['connection']>>

/** Holds the nth query of a ceremony: one of ours (`in`), or WhatsApp's query after the confirmation (`out`). */
export const hold = (direction: 'in' | 'out', nth: number): Order => ({
  kind: 'rule',
  rule: {
    when: { stanza: 'iq', direction, attrs: { type: 'set', ...(direction === 'in' && { xmlns: 'md' }) }, nth },
    do: 'hold',
  },
})
export const REFUSED: Order = { kind: 'play_passkey', how: 'refused', count: 1 }

/** The flags of an authenticator that has not verified its user (WebAuthn, 6.1). */
const ONLY_PRESENT = 0x01

let numbers = 5511912350100

/** An instance, and the phone that links it with its passkey. */
export class Ceremony {
  readonly passkey = new TestPasskey()
  /** What no log, file or row may contain: everything that the passkey answered, and the codes that were compared. */
  readonly secrets: string[] = []
  readonly #harness: LinkedHarness
  readonly #phone = String(numbers++)
  readonly id: string
  /** How many of the next answers lack the check of the user, so that WhatsApp refuses them. */
  wrongAnswers = 0
  /** WhatsApp's latest request. Right after a kill it is still shown. */
  #request: PasskeyRequest | null = null
  #answered: string | null = null

  constructor(harness: LinkedHarness, id: string) {
    this.#harness = harness
    this.id = id
  }

  get #admin() {
    return this.#harness.service.admin
  }

  /** Links the number up to this step. `code` needs the order `REFUSED`. @param orders given when WhatsApp has asked */
  async run(until_: Reached | 'linked', orders: Order[] = []): Promise<void> {
    const first = await this.#scan()
    for (const order of orders) await this.#harness.network.misbehave(order)
    if (until_ === 'asked') return
    await this.#answer(first)
    if (until_ === 'answered') return
    if (until_ === 'held') return this.#untilHeld()
    let code: string | null = null
    if (until_ === 'code' || orders.includes(REFUSED)) {
      await this.#answer(await this.#asked())
      code = await until('a code', async () => (await this.#admin.connection(this.id)).passkey?.code)
      this.secrets.push(code)
    }
    if (until_ === 'code') return
    if (code !== null) await this.#post('/confirm')
    if (until_ === 'linked') await this.#admin.untilState(this.id, 'connected')
  }

  /** The phone scans each code that is shown. Right after a kill, that may be the code of a dead socket. */
  async #scan(): Promise<PasskeyRequest> {
    const { network } = this.#harness
    await network.openAccount(this.#phone)
    await network.misbehave({ kind: 'require_passkey', account: this.#phone, credential: this.passkey.credential })
    return this.#asked(qr => {
      // Answered when the number is linked.
      if (qr !== null) network.scanQr(qr, this.#phone).catch(() => undefined)
    })
  }

  async #asked(look: (qr: string | null) => void = () => undefined): Promise<PasskeyRequest> {
    const before = this.#request?.challenge
    this.#request = await until('WhatsApp to ask for the passkey', async () => {
      const { qr, passkey } = await this.#admin.connection(this.id)
      look(qr)
      return passkey?.request && passkey.request.challenge !== before && passkey.request
    })
    return this.#request
  }

  #untilHeld() {
    return until('the stanza', async () => (await this.#harness.network.scenario()).held.length > 0).then(
      () => undefined,
    )
  }

  /**
   * Scans every code, answers every request and confirms every code to compare, until the connection fits. Right after a
   * kill, those of the dead socket may still be shown.
   * @param ignores a step at which the person does nothing
   */
  async untilEnd(fits: (connection: Connection) => boolean, ignores?: 'assertion' | 'code'): Promise<Connection> {
    let [scanned, confirmed]: (string | null)[] = []
    return until(`the end of the ceremony of ${this.id}`, async () => {
      const connection = await this.#admin.connection(this.id)
      if (fits(connection)) return connection
      const { qr, passkey } = connection
      if (qr !== null && qr !== scanned) this.#harness.network.scanQr(qr, this.#phone).catch(() => undefined)
      const { request, code } = passkey ?? {}
      if (ignores !== 'assertion' && request && request.challenge !== this.#answered)
        await this.#answer(request, [202, 409])
      if (ignores !== 'code' && code && code !== confirmed) await this.#post('/confirm', {}, [202, 409])
      scanned = qr
      confirmed = code ?? null
      return null
    })
  }

  async #answer(request: PasskeyRequest, statuses?: number[]): Promise<void> {
    this.#answered = request.challenge
    const assertion = this.passkey.answer(request, this.wrongAnswers > 0 ? { flags: ONLY_PRESENT } : {})
    this.wrongAnswers = Math.max(0, this.wrongAnswers - 1)
    const { clientDataJSON, authenticatorData, signature } = assertion.response
    this.secrets.push(clientDataJSON, authenticatorData, signature)
    await this.#post('', { assertion }, statuses)
  }

  async #post(path: string, body: object = {}, statuses = [202]): Promise<void> {
    noteBody(body)
    const { service } = this.#harness
    const answer = await fetch(`${service.url}/admin/v1/instances/${this.id}/connection/passkey${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect(statuses).toContain(answer.status)
  }
}
