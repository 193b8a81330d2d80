/**
 * Files of 100 MiB, both ways, through one instance. With SQLite they are stored in a folder, with PostgreSQL in a
 * bucket of an S3 server in memory.
 *
 * - Sending: from `POST /v1/messages/media` of a file that is already stored until WhatsApp has acknowledged the message. The
 *   reference is bare Baileys, which sends the same file from the disk, with the same simulated WhatsApp in its own process.
 * - How much the process's resident memory grows while a file is uploaded by a caller, sent, received from a contact and
 *   downloaded. The peak of samples every 50 ms is compared with the peak of the 5 s before, under the same calls.
 * - The 95th percentile of the latency of API calls during that time. Every 20 ms a call posts a text or reads an
 *   instance, in turn, without waiting for earlier calls.
 *
 * Not measured: files from URLs, many files at once.
 */
import { randomBytes } from 'node:crypto'
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { type InstanceClient, instanceClient } from '../../test/api-client.ts'
import { openMediaPlace } from '../../test/flows/media/media-place.ts'
import { until } from '../../test/until.ts'
import { alternate, figureOf, plainFigure, short } from '../harness/figure.ts'
import { GC_ARGUMENTS, settledMb } from '../harness/memory.ts'
import { linkInstances, type SimulatedNetwork, startNetwork } from '../harness/network.ts'
import { startProcess } from '../harness/remote.ts'
import type { Scenario } from '../harness/scenario.ts'
import { type RunningService, residentMb, startService } from '../harness/service.ts'
import type { BareBaileys } from '../processes/bare-baileys.ts'
import type { ProberProcess } from '../processes/prober.ts'

const MIB = 1_048_576
const CONTACT = '5511987660010'
/** This number confirms delivery and never reads. */
const PROBED = '15005550002'
const FLOOR = { kind: 'at least', ratio: 0.7 } as const
const MEMORY_LIMIT_MB = 40
const P95_LIMIT_MS = 100
const CALL_EVERY_MS = 20
const SAMPLE_EVERY_MS = 50
const WARM_UP_MIB = 10
/** How long the calls run without files. */
const WITHOUT_FILES_MS = 5_000
const POLL_EVERY_MS = 10
const WITHIN_MS = 120_000
/** The phone downloads and verifies a file after WhatsApp has acknowledged its message. */
const VERIFIED_MS = 2_000
const SETTINGS = { MEDIA_MB_PER_MINUTE: '1000000', MEDIA_QUOTA_MB: '1000000' }

export const media: Scenario = {
  name: 'media',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const { store, quick, say } = bench
    const folder = mkdtempSync(join(tmpdir(), 'pombal-bench-media-'))
    cleanUp.defer(() => rmSync(folder, { recursive: true, force: true }))
    const size = (quick ? 10 : 100) * MIB
    const path = join(folder, 'file.bin')
    writeFileSync(path, randomBytes(size))

    const network = await startNetwork(cleanUp)
    const place = cleanUp.use(await openMediaPlace(store))
    const env = { ...SETTINGS, ...place.env, WHATSAPP_URL: network.url }
    const service = cleanUp.use(await startService(await bench.createDatabase(), env, GC_ARGUMENTS))
    const [instance, other] = await linkInstances(service, network, 2)
    const bare = cleanUp.use(await startProcess<BareBaileys>('bare-baileys.ts'))
    await network.scanQr(await bare.call('link', network.url))
    await bare.call('linked')
    const prober = cleanUp.use(await startProcess<ProberProcess>('prober.ts'))

    const owner = await Owner.of(service, network, instance!)
    const probe = { url: service.url, tokens: [other!.token], to: PROBED, everyMs: CALL_EVERY_MS }
    const small = join(folder, 'small.bin')
    writeFileSync(small, randomBytes(WARM_UP_MIB * MIB))
    say('warming up with smaller files')
    await owner.exchange(small, WARM_UP_MIB * MIB)
    await bare.call('sendFile', CONTACT, small)

    const growths: number[] = []
    const p95s: number[] = []
    const notes: string[] = []
    for (let round = 0; round < (quick ? 1 : 3); round += 1) {
      await settledMb(service.pid)
      await prober.call('begin', probe)
      const without = watchMemory(service.pid)
      await sleep(WITHOUT_FILES_MS)
      const withoutMb = without.stop()
      const peak = watchMemory(service.pid)
      const took = await owner.exchange(path, size)
      growths.push(peak.stop() - withoutMb)
      const calls = await prober.call('end')
      p95s.push(calls.p95Ms)
      notes.push(
        `uploaded in ${short(took.upload)}, sent in ${short(took.send)}, received in ${short(took.receive)}, downloaded in ` +
          `${short(took.download)} s; ${calls.calls} calls, ${calls.failed} failed, longest ${short(calls.longestMs)} ms`,
      )
      say(`memory grew by ${short(growths.at(-1)!)} MB, p95 ${short(calls.p95Ms)} ms; ${notes.at(-1)}`)
    }

    const stored = await owner.upload(path, size)
    const rounds = await alternate(
      quick ? 2 : 5,
      async () => size / MIB / (await settled(bare.call('sendFile', CONTACT, path))),
      async () => size / MIB / (await settled(owner.send(stored))),
      say,
    )
    const file = `${size / MIB} MiB`
    const plain = { store, notes }
    return [
      figureOf({
        name: `sending a stored file of ${file}, MiB`,
        store,
        unit: 'per second',
        against: 'bare Baileys',
        ...rounds,
        floor: FLOOR,
      }),
      plainFigure({
        ...plain,
        name: `additional memory while a file of ${file} goes out and comes in`,
        unit: 'MB',
        value: Math.max(...growths),
        atMost: MEMORY_LIMIT_MB,
      }),
      plainFigure({
        ...plain,
        name: `p95 of the API while a file of ${file} goes out and comes in`,
        unit: 'ms',
        value: Math.max(...p95s),
        atMost: P95_LIMIT_MS,
      }),
    ]
  },
}

async function settled<T>(measured: Promise<T>): Promise<T> {
  const result = await measured
  await sleep(VERIFIED_MS)
  return result
}

function watchMemory(pid: number): { stop(): number } {
  let most = 0
  const timer = setInterval(() => {
    most = Math.max(most, residentMb(pid))
  }, SAMPLE_EVERY_MS)
  return {
    stop() {
      clearInterval(timer)
      return most
    },
  }
}

/** One instance and its files. All times are in seconds. */
class Owner {
  readonly #client: InstanceClient
  readonly #url: string
  readonly #network: SimulatedNetwork
  readonly #phone: string

  private constructor(client: InstanceClient, url: string, network: SimulatedNetwork, phone: string) {
    this.#client = client
    this.#url = url
    this.#network = network
    this.#phone = phone
  }

  static async of({ url }: RunningService, network: SimulatedNetwork, { id, token }: { id: string; token: string }) {
    const client = instanceClient(() => url, id, token)
    const { phone } = await client.instance()
    return new Owner(client, url, network, phone!)
  }

  /** A file goes out, then another one of the same size comes in. */
  async exchange(path: string, size: number) {
    const startedAt = performance.now()
    const stored = await this.upload(path, size)
    const upload = secondsSince(startedAt)
    const send = await this.send(stored)
    const receivedAt = performance.now()
    const received = await this.receive(size)
    const receive = secondsSince(receivedAt)
    const downloadedAt = performance.now()
    await this.download(received)
    return { upload, send, receive, download: secondsSince(downloadedAt) }
  }

  /** @returns the ID of the file */
  async upload(path: string, size: number): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const headers = { ...this.#headers, 'content-length': size }
    const sent = request(`${this.#url}/v1/media`, { method: 'POST', headers }, async response => {
      const parts: Buffer[] = []
      for await (const part of response) parts.push(part)
      const answer = Buffer.concat(parts).toString()
      if (response.statusCode === 201) resolve(JSON.parse(answer).data.id)
      else reject(new Error(`The upload was answered with ${response.statusCode}: ${answer}`))
    })
    await pipeline(createReadStream(path), sent)
    return promise
  }

  /** Resolves when WhatsApp has acknowledged the message. */
  async send(file: string): Promise<number> {
    const startedAt = performance.now()
    const { id } = await this.#client.sendMedia({ to: CONTACT, media: file }, randomBytes(8).toString('hex'))
    for (;;) {
      const { status, error } = await this.#client.message(id)
      if (status === 'failed') throw new Error(`The message failed: ${error?.code}`)
      if (status !== 'queued') return secondsSince(startedAt)
      if (performance.now() - startedAt > WITHIN_MS) throw new Error('The message was not sent.')
      await sleep(POLL_EVERY_MS)
    }
  }

  /** A contact sends a file. @returns the ID of the file, once it is stored */
  async receive(size: number): Promise<string> {
    const known = new Set((await this.#ready()).map(({ id }) => id))
    await this.#network.writeFile({ from: CONTACT, to: this.#phone }, size)
    return until(
      'the received file',
      async () => (await this.#ready()).find(({ id }) => !known.has(id))?.media.id,
      WITHIN_MS,
    )
  }

  /** Reads it to its end. */
  async download(id: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    request(`${this.#url}/v1/media/${id}`, { headers: this.#headers }, response => {
      response.resume().on('end', resolve).on('error', reject)
    })
      .on('error', reject)
      .end()
    await promise
  }

  /** The received files that are stored. */
  async #ready(): Promise<{ id: string; media: { id: string } }[]> {
    const response = await fetch(`${this.#url}/v1/events?event=media.ready&limit=1000`, { headers: this.#headers })
    const { data } = (await response.json()) as { data: { body: { data: { id: string; media: { id: string } } } }[] }
    return data.map(({ body }) => body.data)
  }

  get #headers() {
    return { authorization: `Bearer ${this.#client.token}` }
  }
}

function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1_000
}
