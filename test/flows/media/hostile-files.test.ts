import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { animatedPng, hugePng } from '../../pictures/hostile-pictures.ts'
import { newSeed, Random } from '../../rig/random.ts'
import { until } from '../../until.ts'
import { FileHost } from './file-host.ts'
import { MediaClient, sha256 } from './harness.ts'
import { newContact, untilSettled } from './receiving-harness.ts'

/** `FILE_FUZZ=200` for a longer run. */
const FILES = Number(process.env['FILE_FUZZ'] ?? 20)
const MIB = 1_048_576

const NAMES: readonly [string, ...string[]] = [
  '../../../../../../tmp/escaped',
  '..\\..\\..\\escaped.exe',
  '/etc/passwd',
  'C:\\Windows\\system32\\x.dll',
  '..%2f..%2fescaped',
  '....//....//escaped',
  '.',
  '..',
  ' ',
  'page.html',
  'picture.svg',
  'invoice\u202Efdp.exe',
  'a\u0000.png',
  'a\r\nSet-Cookie: x=1.png',
  '"; filename="x.html',
  "'; rm -rf ~; '",
  'x'.repeat(255),
  '\uD800half',
  'CON',
  '__proto__',
  '<img src=x onerror=alert(1)>.png',
]

const TYPES: readonly [string, ...string[]] = [
  'text/html',
  'text/html; charset=utf-7',
  'image/svg+xml',
  'application/xhtml+xml',
  'text/javascript',
  'application/javascript',
  'text/xml',
  'application/pdf',
  'image/png',
  'image/jpeg',
  'video/mp4',
  'audio/ogg; codecs=opus',
  'multipart/x-mixed-replace',
  'application/x-shockwave-flash',
  'text/plain',
]

const SCRIPT = '<script>alert(document.domain)</script>'
const SVG = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">${SCRIPT}</svg>`
const ENTITIES = `<!DOCTYPE x [<!ENTITY a "${'b'.repeat(99)}">${'<!ENTITY b "&a;&a;&a;&a;">'.repeat(50)}]><x>&b;</x>`

/** Pages, scripts, polyglots, and files that grow when something unpacks or draws them. */
const CONTENTS: Readonly<Record<string, () => Buffer>> = {
  page: () => Buffer.from(`<!doctype html>${SCRIPT}`),
  svg: () => Buffer.from(SVG),
  gifAndScript: () => Buffer.from('GIF89a=1;alert(document.domain)//'),
  jpegAndPage: () => Buffer.concat([Buffer.from('ffd8ffe000104a46494600', 'hex'), Buffer.from(SCRIPT)]),
  pngAndPage: () => Buffer.concat([hugePng(1, 1, { unpacked: 5 }), Buffer.from(SCRIPT)]),
  pdfAndScript: () => Buffer.from('%PDF-1.7\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\n'),
  zipAndPage: () => Buffer.concat([Buffer.from('504b0304140000000800', 'hex'), Buffer.from(SCRIPT)]),
  pngBomb: () => hugePng(30_000, 30_000, { unpacked: 64 * MIB }),
  unpackedBomb: () => hugePng(7_000, 7_000, { bits: 16, isInterlaced: true, unpacked: 400 * MIB }),
  cutPng: () => hugePng(3_000, 3_000, { unpacked: MIB }),
  animation: () => animatedPng(2 ** 31 - 1),
  svgInPng: () => Buffer.concat([hugePng(1, 1, { unpacked: 5 }), Buffer.from(SVG)]),
  gzipBomb: () => gzipSync(Buffer.alloc(32 * MIB)),
  entities: () => Buffer.from(ENTITIES),
  endlessBoxes: () => Buffer.concat([Buffer.from('0000001866747970', 'hex'), Buffer.alloc(70_000, 0xff)]),
  endlessPages: () => Buffer.from('OggS'.repeat(20_000)),
  endlessChunks: () => Buffer.concat([Buffer.from('524946460000000057454250', 'hex'), Buffer.alloc(70_000)]),
}

interface HostileFile {
  bytes: Buffer
  name: string
  type: string
}

const KINDS = Object.keys(CONTENTS) as [string, ...string[]]

function fileOf(random: Random, kind = random.pick(KINDS)): HostileFile {
  // No two are the same file.
  const bytes = Buffer.concat([CONTENTS[kind]!(), Buffer.from(`${random.integer(0, 2 ** 31)}`)])
  return { bytes, name: random.pick(NAMES), type: random.pick(TYPES) }
}

interface Sent {
  status: string
  error: object | null
  media: { id: string }
}

/** A number that gets hostile files in every way. */
class Target {
  readonly #harness: LinkedHarness
  readonly #number: LinkedNumber
  readonly #client: MediaClient

  constructor(harness: LinkedHarness, number: LinkedNumber) {
    this.#harness = harness
    this.#number = number
    this.#client = new MediaClient(harness.service.url!, number.instance)
  }

  /** Sends the file. Its content can prevent a thumbnail, but not the message. */
  async send(media: string, n: number): Promise<void> {
    const { id } = await this.#number.instance.sendMedia({ to: newContact(), media }, `sent-${n}`)
    const ended = await until(`${id} to be read`, async () => {
      const found = await this.#number.instance.message(id)
      return ['read', 'failed'].includes(found.status) && found
    })
    expect(ended).toMatchObject({ status: 'read', error: null })
  }

  async upload({ bytes, name, type }: HostileFile): Promise<string> {
    const query = `?filename=${encodeURIComponent(name.toWellFormed())}`
    const { status, text, body } = await this.#client.upload(bytes, { 'content-type': type }, query)
    expect(status, text).toBe(201)
    return body.data.id
  }

  async receive({ bytes, name, type }: HostileFile): Promise<string> {
    const media = { type: 'document' as const, mimetype: type, filename: name, bytes }
    const { id } = await this.#harness.network.writeAs({ from: newContact(), to: this.#number.phone, media })
    const events = await untilSettled(this.#harness, this.#number, id)
    expect(events.map(({ event }) => event)).toEqual(['message.received', 'media.ready'])
    return events[0]!.data.media.id
  }

  async fetch({ bytes, name, type }: HostileFile, host: FileHost, n: number): Promise<string> {
    // A URL parser removes `.` and `..` from the path.
    const { pathname } = new URL(host.url(`/${n}/${encodeURIComponent(name.toWellFormed())}`))
    const url = host.file(pathname, bytes, { 'content-type': type })
    const message = { to: newContact(), media: { url }, as: 'document' }
    const { id } = await this.#number.instance.sendMedia(message, `${n}`)
    const look = async () => this.#number.instance.message(id) as unknown as Promise<Sent>
    const ended = await until(`${id} to be read`, async () => {
      const found = await look()
      return ['read', 'failed'].includes(found.status) && found
    })
    expect(ended).toMatchObject({ status: 'read', error: null })
    return ended.media.id
  }

  /** Expects both answers with the file to be downloads under a harmless name, which cannot run in a browser. */
  async check(id: string, { bytes }: HostileFile): Promise<void> {
    const { url, adminKey } = this.#harness.service
    const admin = { authorization: `Bearer ${adminKey}` }
    const answers = [
      await this.#client.call('GET', id),
      await fetch(`${url}/admin/v1/instances/${this.#number.id}/media/${id}/content`, { headers: admin }),
    ]
    for (const answer of answers) {
      expect(sha256(Buffer.from(await answer.arrayBuffer()))).toBe(sha256(bytes))
      const header = (name: string) => answer.headers.get(name) ?? ''
      expect(header('content-disposition')).toMatch(
        /^attachment; filename="[^"\\/%]*"; filename\*=UTF-8''[\w%.!#$&+^`|~-]+$/,
      )
      const name = decodeURIComponent(header('content-disposition').split("UTF-8''")[1]!)
      expect(name).not.toMatch(/[/\\\p{Cc}\u202E]|^\.\.?$/u)
      expect(header('x-content-type-options')).toBe('nosniff')
      expect(header('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'; sandbox")
      expect([header('set-cookie'), header('access-control-allow-origin')]).toEqual(['', ''])
    }
  }
}

/** The folders and files in it, without the files of the storage, which have names of our own. */
function outsideOf(root: string): string[] {
  return readdirSync(root, { recursive: true })
    .map(String)
    .filter(path => !/^files\/media(\/folder\.id|\/inst_\w+(\/file_\w+)?)?$/.test(path))
    .toSorted()
}

test(
  'hostile names, types and contents: files are never active content, nor written outside of their folder',
  async () => {
    const seed = Number(process.env['FUZZ_SEED'] ?? newSeed())
    console.log(`${FILES} hostile files by each way: FUZZ_SEED=${seed}`)
    const random = new Random(seed)
    const root = mkdtempSync(join(tmpdir(), 'pombal-hostile-'))
    const folder = join(root, 'files/media')
    mkdirSync(folder, { recursive: true })
    try {
      await using host = await FileHost.listen()
      const env = {
        MEDIA_URL: pathToFileURL(folder).href,
        MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${host.port}`,
        MEDIA_MB_PER_MINUTE: '100000',
      }
      await using harness = await LinkedHarness.open('sqlite', { env })
      const target = new Target(harness, await harness.link())
      const besides = readdirSync(harness.service.dataDir).toSorted()
      for (let n = 0; n < FILES; n += 1) {
        // Every kind is uploaded and sent.
        const uploaded = fileOf(random, KINDS[n % KINDS.length])
        const [received, fetched] = [fileOf(random), fileOf(random)]
        const ids = await Promise.all([
          target.upload(uploaded),
          target.receive(received),
          target.fetch(fetched, host, n),
        ])
        await target.check(ids[0], uploaded)
        await target.send(ids[0], n)
        await target.check(ids[1], received)
        await target.check(ids[2], fetched)
      }
      expect(outsideOf(root)).toEqual(['files'])
      expect(readdirSync(harness.service.dataDir).toSorted()).toEqual(besides)
      expect(harness.service.logLines.filter(({ level }) => level >= 50)).toEqual([])
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  },
  LONG_TEST_WITHIN_MS,
)
