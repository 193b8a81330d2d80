import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { STORES } from '../../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { newSeed, Random } from '../../rig/random.ts'
import { until } from '../../until.ts'
import { FileHost } from './file-host.ts'
import { MediaClient, sha256 } from './harness.ts'
import { openMediaPlace } from './media-place.ts'
import { hashOf, type SentFile, sendFrom, untilSettled } from './receiving-harness.ts'
import { sampleFile } from './sample-files.ts'

/** `MEDIA_KILLS=20` for a longer run. */
const KILLS = Number(process.env['MEDIA_KILLS'] ?? 3)
/** Uploading, sending, receiving and fetching the files of one round take about as long. */
const KILL_WITHIN_MS = 1_500
/** WhatsApp acknowledges a stanza after twice this time, so a kill finds the messages at any step. */
const LATENCY_MS = 30
const FORMS = ['image', 'voice', 'document'] as const
const MAX_BYTES = 400_000
/** Uploaded to a bucket in several parts. */
const LARGE_BYTES = 11_000_000

interface Outgoing {
  to: string
  message: string
  hash: string
}

type Incoming = SentFile & { id: string }

/** What happens to one number while the service is killed again and again. */
class Exchange {
  readonly #harness: LinkedHarness
  readonly #number: LinkedNumber
  readonly #host: FileHost
  readonly #random: Random
  /** The hashes of files whose upload was answered, by ID. */
  readonly #uploaded = new Map<string, string>()
  readonly #received: Incoming[] = []
  #downloads = 0

  constructor(harness: LinkedHarness, number: LinkedNumber, host: FileHost, random: Random) {
    this.#harness = harness
    this.#number = number
    this.#host = host
    this.#random = random
  }

  /** Does everything concurrently, and kills the service in the middle. @returns the messages that were accepted */
  async untilKilled(kill: number): Promise<Outgoing[]> {
    const { network } = this.#harness
    const client = new MediaClient(this.#harness.service.url!, this.#number.instance)
    const contact = (n: number) => `55119870${String(kill).padStart(3, '0')}${n}0`
    await network.misbehave({ kind: 'latency', ms: LATENCY_MS })
    // One after the other, because an instance may have only two uploads at the same time.
    const outgoing = [await this.#sendUrl(contact(FORMS.length))]
    for (const [n, form] of FORMS.entries()) outgoing.push(await this.#send(contact(n), form))
    const receiving = FORMS.map((form, n) =>
      sendFrom(this.#harness, this.#number, contact(n), form, { size: this.#size() }),
    )
    const callers = [this.#uploadUntilGone(client), this.#downloadUntilGone(client)]
    if (kill === KILLS - 1) await until('a download', () => this.#downloads > 0)
    await sleep(this.#random.between(0, KILL_WITHIN_MS))
    await this.#harness.kill()
    await Promise.all(callers)
    this.#received.push(...(await Promise.all(receiving)))
    await network.misbehave({ kind: 'latency', ms: 0 })
    await this.#harness.service.admin.untilState(this.#number.id, 'connected')
    return outgoing
  }

  /** Waits until each file is on the phone, once and unchanged. */
  async untilShown(outgoing: readonly Outgoing[]): Promise<void> {
    for (const { to, message, hash } of outgoing) {
      const status = async () => (await this.#number.instance.message(message)).status
      await until(`${message} to be read`, async () => (await status()) === 'read')
      const inbox = await this.#harness.network.inbox(to)
      expect(inbox.map(({ media }) => media?.sha256)).toEqual([hash])
    }
  }

  /** Waits until every received and every uploaded file can be read unchanged. */
  async untilThere(): Promise<void> {
    for (const { id, hash } of this.#received) {
      const events = await untilSettled(this.#harness, this.#number, id)
      expect(events.map(({ event }) => event)).toEqual(['message.received', 'media.ready'])
      expect(await hashOf(this.#harness, this.#number, events[0]!.data.media.id)).toBe(hash)
    }
    for (const [id, hash] of this.#uploaded) expect(await hashOf(this.#harness, this.#number, id)).toBe(hash)
    expect(this.#downloads).toBeGreaterThan(0)
  }

  #size(): number {
    return this.#random.integer(1, MAX_BYTES)
  }

  async #send(to: string, form: (typeof FORMS)[number]): Promise<Outgoing> {
    const { bytes } = sampleFile(form, this.#size())
    const { id, media } = await this.#number.instance.sendFile(to, bytes, { as: form })
    this.#uploaded.set(media, sha256(bytes))
    return { to, message: id, hash: sha256(bytes) }
  }

  async #sendUrl(to: string): Promise<Outgoing> {
    const { bytes } = sampleFile('image', this.#size())
    const url = this.#host.file(`/${to}`, bytes)
    const { id } = await this.#number.instance.sendMedia({ to, media: { url } }, to)
    return { to, message: id, hash: sha256(bytes) }
  }

  /** Uploads until the service is gone. */
  async #uploadUntilGone(client: MediaClient): Promise<void> {
    for (let n = 0; ; n += 1) {
      const { bytes } = sampleFile('document', n === 1 ? LARGE_BYTES : this.#size())
      const answer = await client.upload(bytes).catch(() => null)
      if (answer === null) return
      if (answer.status === 201) this.#uploaded.set(answer.body.data.id, sha256(bytes))
    }
  }

  /** Downloads until the service is gone. A download that ends without an error must be the whole file. */
  async #downloadUntilGone(client: MediaClient): Promise<void> {
    for (;;) {
      const [id, hash] = [...this.#uploaded][this.#random.integer(0, this.#uploaded.size - 1)]!
      const answer = await client.download(id).catch(() => null)
      if (answer === null) return
      if (answer.status !== 200) continue
      expect(sha256(answer.bytes)).toBe(hash)
      this.#downloads += 1
    }
  }
}

test.each(STORES)(
  'kill -9 while files are uploaded, sent, received, fetched and downloaded: each is there once and unchanged, and no other file, on %s',
  async store => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`${KILLS} kills while files are exchanged on ${store}: CRASH_SEED=${seed}`)
    await using place = await openMediaPlace(store)
    await using host = await FileHost.listen()
    const env = {
      ...place.env,
      MEDIA_MB_PER_MINUTE: '1000000',
      MEDIA_QUOTA_MB: '1000000',
      MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${host.port}`,
    }
    await using harness = await LinkedHarness.open(store, { env })
    const number = await harness.link()
    const exchange = new Exchange(harness, number, host, new Random(seed))
    for (let kill = 0; kill < KILLS; kill += 1) {
      await exchange.untilShown(await exchange.untilKilled(kill))
    }
    await exchange.untilThere()

    const { database, service } = harness
    // On PostgreSQL a writer counts as gone after 5 minutes.
    await database.run("update media_files set due_at = 0 where state = 'writing'", service.dataDir)
    await service.restart()
    const isReconciled = async () => {
      const rows = await database.read('select instance_id, id, state from media_files', service.dataDir)
      const names = rows.map(({ instance_id: instance, id, state }) => `${instance}/${id}.${state}`)
      return (
        names.toSorted().join() ===
        place
          .names()
          .map(name => `${name}.stored`)
          .toSorted()
          .join()
      )
    }
    await until('a row for each file, and a file for each row', isReconciled)

    await service.admin.deleteInstance(number.id)
    await until('all files to be removed', () => place.names().length === 0)
    await until('all rows to be erased', async () => (await database.countRowsOf(number.id, service.dataDir)) === 0)
  },
  LONG_TEST_WITHIN_MS,
)
