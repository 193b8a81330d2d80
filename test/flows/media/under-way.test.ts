/** Files that are erased, or whose message is repeated, while they are sent or read, with and without a kill -9. */
import { get, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { eventOf } from '../../receiver.ts'
import { until } from '../../until.ts'
import { MediaClient, sha256 } from './harness.ts'
import { type MediaPlace, openMediaPlace } from './media-place.ts'
import { newContact, sendFrom, untilSettled } from './receiving-harness.ts'
import { sampleFile } from './sample-files.ts'

/** More than what the buffers of a connection hold. */
const READ_BYTES = 30_000_000
const SENT_BYTES = 400_000
const GONE = 410

describe.each(ONE_STORE)('a file on %s', store => {
  let place: MediaPlace
  let harness: LinkedHarness
  beforeAll(async () => {
    place = await openMediaPlace(store)
    harness = await LinkedHarness.open(store, { env: { ...place.env, MEDIA_MB_PER_MINUTE: '100000' } })
  })
  afterAll(async () => {
    await harness?.[Symbol.asyncDispose]()
    await place?.[Symbol.asyncDispose]()
  })

  const clientOf = ({ instance }: LinkedNumber) => new MediaClient(harness.service.url!, instance)
  const uploads = async () => {
    const { rules } = await harness.network.scenario()
    return rules.reduce((sum, { applied }) => sum + applied, 0)
  }
  const misbehave = (stanza: string, effect: unknown, more: object = {}) =>
    harness.network.misbehave({ kind: 'rule', rule: { when: { stanza, ...more }, do: effect } } as never)

  /** A message whose file is on its way to WhatsApp, slowly. */
  async function beginToSend(number: LinkedNumber) {
    await misbehave('upload', { bytesPerSecond: 50_000 })
    const { bytes } = sampleFile('document', SENT_BYTES)
    const to = newContact()
    const sent = await number.instance.sendFile(to, bytes)
    await until('the upload to begin', async () => (await uploads()) > 0)
    return { ...sent, to, hash: sha256(bytes) }
  }

  async function afterKill(number: LinkedNumber): Promise<void> {
    await harness.kill()
    await harness.service.admin.untilState(number.id, 'connected')
  }

  const untilRead = (number: LinkedNumber, id: string) =>
    until(`${id} to be read`, async () => {
      const { status, error } = await number.instance.message(id)
      expect(error).toBeNull()
      return status === 'read'
    })
  const shownTo = async (to: string) =>
    (await harness.network.inbox(to)).map(({ media, copies }) => ({ hash: media?.sha256, copies }))

  test.each([{ killed: false }, { killed: true }])(
    'that is being sent is erased neither by its ID nor with its chat (killed: $killed)',
    async ({ killed }) => {
      const number = await harness.link()
      const { id, media, to, hash } = await beginToSend(number)
      expect(await clientOf(number).codeOf('DELETE', media)).toBe('media_in_use')
      const erased = await fetch(`${harness.service.url}/v1/chats/${to}/media`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${number.instance.token}` },
      })
      expect(await erased.json()).toEqual({ data: { erased: 0, inUse: 1 } })
      if (killed) await afterKill(number)
      await harness.network.misbehave({ kind: 'clear' })
      await untilRead(number, id)
      expect(await shownTo(to)).toEqual([{ hash, copies: 1 }])
      expect((await clientOf(number).call('DELETE', media)).status).toBe(204)
    },
    LONG_TEST_WITHIN_MS,
  )

  test.each([{ killed: false }, { killed: true }])(
    'that is being forwarded is not erased with the contact who sent it until it has arrived (killed: $killed)',
    async ({ killed }) => {
      const number = await harness.link()
      const [contact, to] = [newContact(), newContact()]
      const { id: received, hash } = await sendFrom(harness, number, contact, 'document', { size: SENT_BYTES })
      const [event] = await untilSettled(harness, number, received)
      const media = event!.data.media.id
      const erase = async () => {
        const url = `${harness.service.url}/admin/v1/instances/${number.id}/contacts/${contact}`
        const headers = { authorization: `Bearer ${harness.service.adminKey}` }
        return ((await (await fetch(url, { method: 'DELETE', headers })).json()) as { data: object }).data
      }
      await misbehave('upload', { bytesPerSecond: 50_000 })
      const response = await fetch(`${harness.service.url}/v1/messages/media`, {
        method: 'POST',
        headers: { authorization: `Bearer ${number.instance.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ to, media }),
      })
      const { id } = ((await response.json()) as { data: { id: string } }).data
      await until('the upload to begin', async () => (await uploads()) > 0)
      expect(await erase()).toMatchObject({ messages: 0, files: 0, kept: 1 })
      if (killed) await afterKill(number)
      await harness.network.misbehave({ kind: 'clear' })
      await untilRead(number, id)
      expect(await shownTo(to)).toEqual([{ hash, copies: 1 }])
      expect(await erase()).toMatchObject({ messages: 1, files: 1, kept: 0 })
      expect(await clientOf(number).codeOf('GET', media)).toBe('media_gone')
    },
    LONG_TEST_WITHIN_MS,
  )

  test(
    'that is being sent when its instance is deleted and the service is killed is erased, and its message fails',
    async () => {
      const number = await harness.link()
      const other = await harness.link()
      await clientOf(other).upload(sampleFile('document', SENT_BYTES).bytes)
      const kept = place.names().filter(name => name.includes(other.id))
      expect(kept).toHaveLength(1)
      const { id, to } = await beginToSend(number)
      await harness.service.admin.deleteInstance(number.id)
      await harness.kill()
      await harness.network.misbehave({ kind: 'clear' })
      await until('the files to be removed', () => !place.names().some(name => name.includes(number.id)))
      const rows = () => harness.database.countRowsOf(number.id, harness.service.dataDir)
      await until('the rows to be erased', async () => (await rows()) === 0)
      // A webhook may arrive repeatedly, with the same ID.
      const events = new Map(harness.receiver.requests.map(one => [one.headers['webhook-id'], eventOf(one)]))
      const about = [...events.values()].filter(({ data }) => data.id === id)
      expect(about.map(({ event, data }) => [event, (data['error'] as { code: string }).code])).toEqual([
        ['message.failed', 'instance_deleted'],
      ])
      expect(await shownTo(to)).toEqual([])
      expect(place.names()).toEqual(expect.arrayContaining(kept))
    },
    LONG_TEST_WITHIN_MS,
  )

  test.each([{ killed: false }, { killed: true }])(
    'that is erased while a caller reads it is read unchanged; only a kill cuts the answer off (killed: $killed)',
    async ({ killed }) => {
      const number = await harness.link()
      const { bytes } = sampleFile('document', READ_BYTES)
      const { id } = (await clientOf(number).upload(bytes)).body.data
      const opened = await new Promise<IncomingMessage>((resolve, reject) => {
        const headers = { authorization: `Bearer ${number.instance.token}` }
        get(`${harness.service.url}/v1/media/${id}`, { headers, agent: false }, resolve).on('error', reject)
      })
      expect(opened.statusCode).toBe(200)
      expect((await clientOf(number).call('DELETE', id)).status).toBe(204)
      expect((await clientOf(number).call('GET', id)).status).toBe(GONE)
      if (killed) await harness.kill()
      else await until('the bytes to be removed', () => !place.names().some(name => name.includes(number.id)))
      const parts: Buffer[] = []
      const ended = await (async () => {
        for await (const part of opened) parts.push(part as Buffer)
      })().then(
        () => 'whole' as const,
        () => 'cut' as const,
      )
      const read = Buffer.concat(parts)
      expect(read.equals(bytes.subarray(0, read.length))).toBe(true)
      expect(ended).toBe(read.length === bytes.length ? 'whole' : 'cut')
      if (!killed) expect(ended).toBe('whole')
      expect((await clientOf(number).call('GET', id)).status).toBe(GONE)
      // The killed process may have claimed the removal for a minute.
      const { database, service } = harness
      if (killed) await database.run("update media_files set due_at = 0 where state = 'removing'", service.dataDir)
      await until('the bytes to be removed', () => !place.names().some(name => name.includes(number.id)))
    },
    LONG_TEST_WITHIN_MS,
  )

  test('is read by four callers at the same time, and by a fifth when one of them has ended', async () => {
    const number = await harness.link()
    const { id } = (await clientOf(number).upload(sampleFile('document', READ_BYTES).bytes)).body.data
    const open = () =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const headers = { authorization: `Bearer ${number.instance.token}` }
        get(`${harness.service.url}/v1/media/${id}`, { headers, agent: false }, resolve).on('error', reject)
      })
    const readers = [await open(), await open(), await open(), await open()]
    expect(readers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200])
    const refused = await clientOf(number).call('GET', id)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    expect(await refused.json()).toMatchObject({ error: { code: 'too_many_transfers' } })
    expect((await clientOf(await harness.link()).upload(sampleFile('document', 10).bytes)).status).toBe(201)
    readers.pop()!.destroy()
    await until(
      'a free place',
      async () => (await clientOf(number).download(id, { range: 'bytes=0-0' })).status === 206,
    )
    for (const reader of readers) reader.destroy()
  })

  test.each([{ killed: false }, { killed: true }])(
    'of a message that WhatsApp did not get is not uploaded again (killed: $killed)',
    async ({ killed }) => {
      const number = await harness.link()
      await misbehave('message', killed ? 'drop' : 'cut', { direction: 'in', times: 1 })
      await misbehave('upload', { delayMs: 0 })
      const applied = async () => (await harness.network.scenario()).rules.map(rule => rule.applied)
      const { bytes } = sampleFile('image', SENT_BYTES)
      const to = newContact()
      const { id } = await number.instance.sendFile(to, bytes)
      await until('the message to be lost', async () => (await applied())[0] === 1)
      if (killed) await afterKill(number)
      await untilRead(number, id)
      expect(await shownTo(to)).toEqual([{ hash: sha256(bytes), copies: 1 }])
      expect(await applied()).toEqual([1, 1])
      await harness.network.misbehave({ kind: 'clear' })
    },
    LONG_TEST_WITHIN_MS,
  )
})
