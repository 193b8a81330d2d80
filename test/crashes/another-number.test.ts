import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import type { InstanceClient } from '../api-client.ts'
import { createDatabase, STORES, type StoreKind, type TestDatabase } from '../databases/database.ts'
import { CONDITION_WITHIN_MS, TEST_WITHIN_MS } from '../deadlines.ts'
import { type Network, startNetwork } from '../network.ts'
import { Receiver } from '../receiver.ts'
import { newSeed, Random } from '../rig/random.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

/** More messages than two commits fail. */
const QUEUED = 450
const AT_ONCE = 16
const KILLS = 3
/** A kill comes at a random moment: until the queue has failed after a logout (with a margin), or after a connect. */
const KILL_WITHIN_MS = 400
const FAILED_WITHIN_MS = 60
const SETTLED_WITHIN_MS = CONDITION_WITHIN_MS
const RECIPIENTS = Array.from({ length: 20 }, (_, n) => `55119000${String(n).padStart(5, '0')}`)

class Scene {
  readonly service: Service
  readonly network: Network
  readonly instance: InstanceClient
  readonly receiver: Receiver
  readonly #database: TestDatabase

  private constructor(
    service: Service,
    network: Network,
    instance: InstanceClient,
    receiver: Receiver,
    database: TestDatabase,
  ) {
    this.service = service
    this.network = network
    this.instance = instance
    this.receiver = receiver
    this.#database = database
  }

  static async open(store: StoreKind): Promise<Scene> {
    const database = await createDatabase(store, inject('postgresUrl'))
    const network = await startNetwork()
    const env = { WHATSAPP_URL: network.url, SANDBOX: 'off', ...database.env }
    const service = await new Service({ env }).start()
    const { id, token } = await service.admin.createInstance('whatsapp')
    const instance = service.instance(id, token)
    const receiver = await new Receiver().listen()
    await instance.setWebhook(receiver.url)
    return new Scene(service, network, instance, receiver, database)
  }

  /** Links a new phone. @returns its number */
  async link(): Promise<string> {
    const { admin } = this.service
    const { id } = this.instance
    await admin.connect(id)
    let phone = ''
    // Right after a kill, the code that is shown may belong to a dead socket.
    await until(
      'a phone to be linked',
      async () => {
        const { state, qr } = await admin.connection(id)
        if (qr !== null) phone = (await this.network.scanQr(qr).catch(() => ({ phone }))).phone
        return state === 'connecting' || state === 'connected'
      },
      SETTLED_WITHIN_MS,
    )
    await admin.untilState(id, 'connected', SETTLED_WITHIN_MS)
    return phone
  }

  /** Only one message gets through to each recipient: nothing is acknowledged. @returns the texts, by id */
  async fillQueue(name: string): Promise<Map<string, string>> {
    for (const what of [{ stanza: 'ack', attrs: { class: 'message' } }, { stanza: 'receipt' }]) {
      const when = { ...what, direction: 'out' } as const
      await this.network.misbehave({ kind: 'rule', rule: { when, do: 'hold' } })
    }
    const texts = new Map<string, string>()
    const work = Array.from({ length: AT_ONCE }, async (_, worker) => {
      for (let n = worker; n < QUEUED; n += AT_ONCE) {
        const text = `${name} ${n}`
        texts.set((await this.instance.send(RECIPIENTS[n % RECIPIENTS.length] as string, text)).id, text)
      }
    })
    await Promise.all(work)
    return texts
  }

  async kill(): Promise<void> {
    await this.service.kill('SIGKILL')
    await this.#database.expireLeases()
    await this.network.misbehave({ kind: 'clear' })
    await this.service.start()
  }

  async shownFrom(phone: string): Promise<string[]> {
    const inboxes = await Promise.all(RECIPIENTS.map(to => this.network.inbox(to)))
    return inboxes.flat().flatMap(message => (message.from === phone ? [message.text] : []))
  }

  /** The last reported state of each message, or the code of its failure, once every message has an event. */
  async ends(ids: Iterable<string>): Promise<Map<string, string>> {
    const ends = new Map<string, string>()
    const wanted = [...ids]
    await until(
      'an event of every message',
      () => {
        for (const { event, data } of this.receiver.events) {
          ends.set(data.id, (data['error'] as { code: string } | undefined)?.code ?? event)
        }
        return wanted.every(id => ends.has(id))
      },
      SETTLED_WITHIN_MS,
    )
    return new Map(wanted.map(id => [id, ends.get(id) as string]))
  }

  async dispose(): Promise<void> {
    await this.service.dispose()
    await this.network.close()
    await this.receiver.close()
    await this.#database.dispose()
  }
}

describe.each(STORES)('kill -9 while a queue fails, on %s', store => {
  const seed = Number(process.env['CRASH_SEED'] ?? newSeed())

  test('kill -9 at a logout that is followed by linking another number: nothing of the old queue goes out from the new number', async () => {
    console.log(`${store}: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    const scene = await Scene.open(store)
    try {
      const { admin } = scene.service
      let phone = await scene.link()
      for (let kill = 0; kill < KILLS; kill += 1) {
        const old = await scene.fillQueue(`old ${kill}`)
        await admin.logout(scene.instance.id)
        await admin.untilState(scene.instance.id, 'logged_out')
        await admin.connect(scene.instance.id)
        await sleep(random.between(0, FAILED_WITHIN_MS))
        await scene.kill()
        const next = await scene.link()
        expect(next).not.toBe(phone)
        const { id } = await scene.instance.send(RECIPIENTS[0] as string, `new ${kill}`)
        await until('it to be read', async () => (await scene.instance.message(id)).status === 'read')
        const ends = await scene.ends(old.keys())
        expect(await scene.shownFrom(next)).toEqual([`new ${kill}`])
        expect(new Set(ends.values())).toEqual(new Set(['unconfirmed', 'instance_logged_out']))
        phone = next
      }
    } finally {
      await scene.dispose()
    }
  })

  test.each(['logout', 'deletion'] as const)(
    'kill -9 at a %s: a message that a phone shows is sent or unconfirmed, never reported as unsent',
    async end => {
      console.log(`${store}: CRASH_SEED=${seed}`)
      const random = new Random(seed)
      const scene = await Scene.open(store)
      try {
        const phone = await scene.link()
        const texts = await scene.fillQueue('old')
        await until('a phone to show one', async () => (await scene.shownFrom(phone)).length > 0)
        const { logout, deleteInstance } = scene.service.admin
        await (end === 'logout' ? logout : deleteInstance)(scene.instance.id)
        await sleep(random.between(0, KILL_WITHIN_MS))
        await scene.kill()
        const ends = await scene.ends(texts.keys())
        const shown = new Set(await scene.shownFrom(phone))
        expect(shown.size).toBeGreaterThan(0)
        const wrong = [...ends].filter(
          ([id, known]) => shown.has(texts.get(id) as string) && known.startsWith('instance'),
        )
        expect(wrong).toEqual([])
      } finally {
        await scene.dispose()
      }
    },
    TEST_WITHIN_MS,
  )
})
