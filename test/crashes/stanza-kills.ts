import { setTimeout as sleep } from 'node:timers/promises'
import { createSimulator, type Order, type Rule, type Simulator } from '@pombal/simulator'
import type { InstanceClient } from '../api-client.ts'
import type { TestDatabase } from '../databases/database.ts'
import { eventOf, Receiver } from '../receiver.ts'
import { Random } from '../rig/random.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

/** A send to a new recipient and an incoming message take some twenty stanzas. */
const MOST_STANZAS = 22
const NEXT_STANZA_WITHIN_MS = 150
const KNOWN = '5511987654321'

export interface StanzaKillOptions {
  database: TestDatabase
  kills: number
  seed: number
  /** Rules of the network that are always active. */
  permanentRules?: readonly Rule[]
  say(line: string): void
}

/**
 * Repeatedly kills the service between two stanzas of a send and of a receive: the network holds every stanza and releases
 * some of them.
 * @returns one sentence per broken guarantee
 */
export async function runStanzaKills(options: StanzaKillOptions): Promise<string[]> {
  const { database, kills, seed, permanentRules = [], say } = options
  const random = new Random(seed)
  await using harness = await StanzaKillHarness.open(database, permanentRules)
  const violations: string[] = []
  for (let kill = 1; kill <= kills && violations.length === 0; kill++) {
    const contact = random.next() < 0.5 ? KNOWN : `55119${String(random.integer(0, 99_999_999)).padStart(8, '0')}`
    const stanzas = random.integer(0, MOST_STANZAS)
    violations.push(...(await harness.kill(kill, contact, stanzas)))
    say(`kill ${kill}/${kills} after ${stanzas} stanzas`)
  }
  return violations
}

/** One linked instance between a network in this process and a receiver. */
class StanzaKillHarness implements AsyncDisposable {
  readonly #database: TestDatabase
  readonly #network: Simulator
  readonly #service: Service
  readonly #receiver: Receiver
  readonly #instance: InstanceClient
  readonly #phone: string
  readonly #permanentRules: readonly Rule[]

  private constructor(
    database: TestDatabase,
    network: Simulator,
    service: Service,
    receiver: Receiver,
    instance: InstanceClient,
    phone: string,
    permanentRules: readonly Rule[],
  ) {
    this.#database = database
    this.#network = network
    this.#service = service
    this.#receiver = receiver
    this.#instance = instance
    this.#phone = phone
    this.#permanentRules = permanentRules
  }

  static async open(database: TestDatabase, permanentRules: readonly Rule[]): Promise<StanzaKillHarness> {
    await using ready = new AsyncDisposableStack()
    const network = await createSimulator({ claimedPreKeys: 500, timings: { deliveredAfterMs: 20, readAfterMs: 40 } })
    ready.defer(() => network.close())
    for (const rule of permanentRules) await network.misbehave({ kind: 'rule', rule })
    const receiver = await new Receiver().listen()
    ready.defer(() => receiver.close())
    const env = { WHATSAPP_URL: network.url, ...database.env }
    const service = await new Service({ env }).start()
    ready.defer(() => service.dispose())
    const { id, token } = await service.admin.createInstance('whatsapp')
    await service.admin.connect(id)
    const qr = await until('a QR code', async () => (await service.admin.connection(id)).qr)
    const { phone } = await network.scanQr(qr)
    await service.admin.untilState(id, 'connected')
    const instance = service.instance(id, token)
    await instance.setWebhook(receiver.url)
    ready.move()
    return new StanzaKillHarness(database, network, service, receiver, instance, phone, permanentRules)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service.dispose()
    await this.#network.close()
    await this.#receiver.close()
  }

  /** Releases `stanzas` stanzas, kills the service and starts it again. @returns one sentence per broken guarantee */
  async kill(kill: number, contact: string, stanzas: number): Promise<string[]> {
    const [out, text] = [`out ${kill} ✓`, `in ${kill} ✓`]
    const where = `kill ${kill}, after ${stanzas} stanzas`
    await this.#order({ kind: 'rule', rule: { when: { account: this.#phone }, do: 'hold' } })
    const sending = await this.#instance.send(contact, out)
    const written = await this.#network.writeAs({ from: contact, to: this.#phone, text })
    for (let n = 0; n < stanzas && (await this.#hasHeld()); n++) await this.#order({ kind: 'release', count: 1 })
    await this.#service.kill('SIGKILL')
    await this.#clearRules()
    await this.#database.expireLeases()
    await this.#service.start()
    await until(`the text to be read (${where})`, () => this.#isRead(sending.id))
    await until(`the message to be reported (${where})`, () => this.#countEvents(written.id) > 0)
    const asked = await this.#exchange(contact, kill, where)
    const shown = (await this.#network.inbox(contact)).filter(message => message.text === out)
    const told = this.#countEvents(written.id)
    return [
      ...(shown.length === 1 && shown[0]?.from === this.#phone ? [] : [`Shown ${shown.length} times: ${where}.`]),
      ...(told === 1 ? [] : [`Reported under ${told} event IDs: ${where}.`]),
      ...asked
        .filter(({ times }) => times > 1)
        .map(({ way, times }) => `Requested again ${times} times, ${way}: ${where}.`),
    ]
  }

  /** Exchanges one more message in each direction. @returns how often each was requested again */
  async #exchange(contact: string, kill: number, where: string): Promise<{ way: string; times: number }[]> {
    for (const direction of ['in', 'out'] as const) {
      const when = { stanza: 'receipt', direction, attrs: { type: 'retry' }, account: this.#phone }
      await this.#order({ kind: 'rule', rule: { when, do: { delayMs: 0 } } })
    }
    const next = await this.#instance.send(contact, `after the kill ${kill}`)
    const answer = await this.#network.writeAs({ from: contact, to: this.#phone, text: `answer ${kill}` })
    await until(`the next text to be read (${where})`, () => this.#isRead(next.id))
    await until(`the answer to be reported (${where})`, () => this.#countEvents(answer.id) > 0)
    const { rules } = await this.#network.scenario()
    await this.#clearRules()
    const requests = rules.filter(({ rule }) => rule.when.attrs?.['type'] === 'retry')
    return requests.map(({ rule, applied }) => ({ way: rule.when.direction ?? '', times: applied }))
  }

  /** Removes all rules except the permanent ones. */
  async #clearRules(): Promise<void> {
    await this.#order({ kind: 'clear' })
    for (const rule of this.#permanentRules) await this.#order({ kind: 'rule', rule })
  }

  async #order(order: Order): Promise<void> {
    await this.#network.misbehave(order)
  }

  async #hasHeld(): Promise<boolean> {
    const giveUpAt = performance.now() + NEXT_STANZA_WITHIN_MS
    while ((await this.#network.scenario()).held.length === 0) {
      if (performance.now() > giveUpAt) return false
      await sleep(2)
    }
    return true
  }

  async #isRead(id: string): Promise<boolean> {
    return (await this.#instance.message(id)).status === 'read'
  }

  /** The number of events of this incoming message. Each may have been posted more than once. */
  #countEvents(id: string): number {
    const requests = this.#receiver.requests.filter(request => eventOf(request).data.id === id)
    return new Set(requests.map(({ headers }) => headers['webhook-id'])).size
  }
}
