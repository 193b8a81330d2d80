/** The storage of files cannot be used for a time: calls are refused, what was accepted succeeds later, and no event is lost. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import type { StoreKind } from '../../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { until } from '../../until.ts'
import { FileHost } from './file-host.ts'
import { MediaClient, sha256 } from './harness.ts'
import { type MediaPlace, openBucket, openFolder } from './media-place.ts'
import { eventsOf, hashOf, newContact, sendFrom, untilSettled } from './receiving-harness.ts'
import { sampleFile } from './sample-files.ts'

const MIB = 1_048_576
const OK = 201
const UNAVAILABLE = 503

interface Outage {
  name: string
  store: StoreKind
  open(): Promise<{ place: MediaPlace; begin(pid: number): void; end(pid: number): void }>
  /** The size of a file that cannot be stored during the outage. */
  size: number
  /** Whether stored files cannot be read either. */
  isUnreadable: boolean
}

/** Makes the system refuse writes beyond `bytes` of a file (RLIMIT_FSIZE), as a full disk does. The database needs less. */
function limitFiles(pid: number, bytes: number | 'unlimited'): void {
  execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:unlimited`])
}

const OUTAGES: readonly Outage[] = [
  {
    name: 'the disk is full',
    store: 'sqlite',
    async open() {
      return {
        place: openFolder(),
        begin: pid => limitFiles(pid, 16 * MIB),
        end: pid => limitFiles(pid, 'unlimited'),
      }
    },
    size: 20 * MIB,
    isUnreadable: false,
  },
  {
    name: 'the bucket cannot be reached',
    store: 'postgres',
    async open() {
      const place = await openBucket()
      const setAway = (isAway: boolean) => {
        place.server.isAway = isAway
      }
      return { place, begin: () => setAway(true), end: () => setAway(false) }
    },
    size: 300_000,
    isUnreadable: true,
  },
  {
    name: 'the bucket fails in the middle of a file',
    store: 'postgres',
    async open() {
      const place = await openBucket()
      const fail = (request: string) => /partNumber=[2-9]|^GET/.test(request)
      return {
        place,
        begin: () => {
          place.server.fails = fail
        },
        end: () => {
          place.server.fails = () => false
        },
      }
    },
    size: 12 * MIB,
    isUnreadable: true,
  },
]

const file = (size: number) => sampleFile('document', size).bytes

async function isRead({ instance }: LinkedNumber, id: string): Promise<boolean> {
  const { status, error } = await instance.message(id)
  expect(error).toBeNull()
  return status === 'read'
}

test.each(OUTAGES)(
  '$name',
  async ({ store, open, size, isUnreadable }) => {
    const { place, begin, end } = await open()
    await using _ = place
    await using host = await FileHost.listen()
    const env = { ...place.env, MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${host.port}`, MEDIA_MB_PER_MINUTE: '100000' }
    await using harness = await LinkedHarness.open(store, { env })
    const number = await harness.link()
    const client = new MediaClient(harness.service.url!, number.instance)
    const pid = harness.service.pid!
    const stored = file(size)
    const { id: media } = (await client.upload(stored)).body.data
    const before = place.names()

    begin(pid)
    const refused = await client.upload(file(size))
    expect([refused.status, refused.body.error.code]).toEqual([UNAVAILABLE, 'service_unavailable'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await client.download(media)).status).toBe(isUnreadable ? UNAVAILABLE : 200)
    const [to, other, third] = [newContact(), newContact(), newContact()]
    const { id: outgoing } = await number.instance.sendMedia({ to, media }, 'stored')
    const fetched = file(size)
    const url = host.file('/file.pdf', fetched)
    const { id: fromUrl } = await number.instance.sendMedia({ to: other, media: { url } }, 'url')
    const incoming = await sendFrom(harness, number, third, 'document', { size })
    await until('the event', async () => (await eventsOf(harness, number, incoming.id)).length > 0)
    await harness.sendAndRead(number, newContact())
    await until('a fetch', () => host.requestsOf('/file.pdf') > 0)
    expect((await number.instance.message(fromUrl)).status).toBe('queued')
    expect((await number.instance.message(outgoing)).status).toMatch(isUnreadable ? /^queued$/ : /./)
    expect(await eventsOf(harness, number, incoming.id)).toMatchObject([{ event: 'message.received' }])

    end(pid)
    for (const [id, contact, bytes] of [
      [outgoing, to, stored],
      [fromUrl, other, fetched],
    ] as const) {
      await until(`${id} to be read`, () => isRead(number, id))
      const inbox = await harness.network.inbox(contact)
      expect(inbox.map(message => message.media?.sha256)).toEqual([sha256(bytes)])
    }
    const events = await untilSettled(harness, number, incoming.id)
    expect(events.map(({ event }) => event)).toEqual(['message.received', 'media.ready'])
    expect(await hashOf(harness, number, events[0]!.data.media.id)).toBe(incoming.hash)
    expect(await hashOf(harness, number, media)).toBe(sha256(stored))
    expect((await client.upload(file(size))).status).toBe(OK)
    await until('nothing to be left of refused files', () => place.names().length === before.length + 3)
  },
  LONG_TEST_WITHIN_MS,
)
