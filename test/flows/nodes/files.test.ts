/** Two nodes that share a database and a bucket: a file is the same on both, and so is the quota. */
import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness } from '../../linked-harness.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'
import { FileHost } from '../media/file-host.ts'
import { MediaClient, sha256 } from '../media/harness.ts'
import { openBucket } from '../media/media-place.ts'
import { eventsOf, newContact, sendFrom } from '../media/receiving-harness.ts'
import { sampleFile } from '../media/sample-files.ts'

const MIB = 1_048_576
const QUOTA_MB = 8

test(
  'a file is uploaded, read, sent, received and erased on either node, and both keep to the quota together',
  async () => {
    await using place = await openBucket()
    await using host = await FileHost.listen()
    const env = {
      ...place.env,
      MEDIA_QUOTA_MB: `${QUOTA_MB}`,
      MEDIA_MB_PER_MINUTE: '100000',
      MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${host.port}`,
    }
    await using harness = await LinkedHarness.open('postgres', { env })
    const { network, database } = harness
    const other = new Service({
      env: { ...database.env, WHATSAPP_URL: network.url, ...env },
    })
    try {
      await other.start()
      const number = await harness.link()
      const nodes = [harness.service, other].map(({ url }) => new MediaClient(url!, number.instance)) as [
        MediaClient,
        MediaClient,
      ]
      const [here, there] = nodes

      const { bytes } = sampleFile('document', 100_000)
      const { id } = (await there.upload(bytes)).body.data
      for (const node of nodes) expect(sha256((await node.download(id)).bytes)).toBe(sha256(bytes))
      expect((await here.upload(bytes)).body.data.id).toBe(id)

      const to = newContact()
      const instance = other.instance(number.id, number.instance.token)
      const url = host.file('/a.pdf', bytes)
      for (const [n, media] of [id, { url }].entries()) {
        const sent = await instance.sendMedia({ to, media }, `sent-${n}`)
        await until('it to be read', async () => (await instance.message(sent.id)).status === 'read')
      }
      expect((await network.inbox(to)).map(({ media }) => media?.sha256)).toEqual(Array(2).fill(sha256(bytes)))

      const rule = { when: { stanza: 'download', times: 1 }, do: { delayMs: 1_500 } }
      await network.misbehave({ kind: 'rule', rule } as never)
      const incoming = await sendFrom(harness, number, newContact())
      const [received] = await until('the message', async () => {
        const events = await eventsOf(harness, number, incoming.id)
        return events.length > 0 && events
      })
      const waited = await Promise.all(nodes.map(node => node.download(`${received!.data.media.id}?wait=25`)))
      expect(waited.map(answer => sha256(answer.bytes))).toEqual([incoming.hash, incoming.hash])

      expect((await there.call('DELETE', id)).status).toBe(204)
      expect(await here.codeOf('GET', id)).toBe('media_gone')

      const large = Array.from({ length: 8 }, () => sampleFile('document', 3 * MIB).bytes)
      const answers: { status: number }[] = []
      for (let n = 0; n < large.length; n += 4) {
        const part = large.slice(n, n + 4)
        answers.push(...(await Promise.all(part.map((each, at) => nodes[at % 2]!.upload(each)))))
      }
      const statuses = answers.map(({ status }) => status)
      expect(statuses.filter(status => status === 201)).toHaveLength(2)
      expect(statuses.filter(status => status === 413)).toHaveLength(6)
      const stored = () => [...place.server.objects.values()].reduce((sum, object) => sum + object.length, 0)
      // Refused files are removed soon after.
      await until('the bucket to hold no more than the quota', () => stored() < QUOTA_MB * MIB)
      await until('nothing to be left of refused files', () => place.server.uploads.size === 0)
    } finally {
      await other.dispose()
    }
  },
  LONG_TEST_WITHIN_MS,
)
