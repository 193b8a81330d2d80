import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { until } from '../../until.ts'
import { MediaClient, sha256 } from './harness.ts'
import {
  eventsOf,
  feedOf,
  hashOf,
  MEDIA_FORMS,
  messageOf,
  newContact,
  posted,
  sendFrom,
  untilSettled,
} from './receiving-harness.ts'
import { sampleFile } from './sample-files.ts'

const QUOTA_MB = 2

let harness: LinkedHarness
let number: LinkedNumber
let media: MediaClient
beforeAll(async () => {
  harness = await LinkedHarness.open('sqlite', { env: { MEDIA_QUOTA_MB: `${QUOTA_MB}` } })
  number = await harness.link()
  media = new MediaClient(harness.service.url!, number.instance)
})
afterEach(() => harness.network.misbehave({ kind: 'clear' }))
afterAll(async () => harness?.[Symbol.asyncDispose]())

const misbehave = (effect: object | string, times?: number) =>
  harness.network.misbehave({
    kind: 'rule',
    rule: { when: { stanza: 'download', ...(times && { times }) }, do: effect },
  } as never)

test.each(MEDIA_FORMS)('a file is recorded immediately with its message, and its bytes follow: %s', async form => {
  const caption = ['image', 'video', 'document'].includes(form) ? { caption: 'um recado ✓' } : {}
  const filename = form === 'document' ? { filename: '../a b.pdf' } : {}
  const sent = await sendFrom(harness, number, newContact(), form, { ...caption, ...filename })
  const [received, ready, ...more] = await untilSettled(harness, number, sent.id)
  expect(more).toEqual([])
  const type = form === 'voice' ? 'audio' : form
  const facts = { size: sent.size, sha256: sent.hash, mimetype: sent.mimetype }
  expect(received).toMatchObject({ event: 'message.received', data: { type, media: facts } })
  expect(received!.data.text).toBe(caption.caption)
  expect(ready).toMatchObject({ event: 'media.ready', data: { messageId: received!.data.messageId, media: facts } })
  const { id } = received!.data.media
  expect(ready!.data.media.id).toBe(id)
  if (form === 'document') expect(received!.data.media.filename).toBe('a b.pdf')
  expect(await messageOf(number, received!.data.messageId)).toMatchObject({
    type,
    media: { id, ...facts, status: 'ready', error: null },
  })
  const response = await media.call('GET', id)
  expect(response.headers.get('content-type')).toBe(sent.mimetype)
  expect(response.headers.get('content-disposition')).toMatch(/^attachment/)
  expect(sha256(Buffer.from(await response.arrayBuffer()))).toBe(sent.hash)
})

test("the instance's webhook gets the message, and no event about its file", async () => {
  const sent = await sendFrom(harness, number, newContact())
  await untilSettled(harness, number, sent.id)
  const last = await harness.network.writeAs({ from: newContact(), to: number.phone, text: 'after it' })
  await until('the text', () => posted(harness).some(({ data }) => data.id === last.id))
  const about = posted(harness).filter(({ data }) => data.id === sent.id)
  expect(about.map(({ event }) => event)).toEqual(['message.received'])
})

test('a file that is not there yet is pending, and a call can wait for it', async () => {
  await misbehave('hold', 1)
  const sent = await sendFrom(harness, number, newContact())
  const [received] = await until('the message', async () => {
    const events = await eventsOf(harness, number, sent.id)
    return events.length > 0 && events
  })
  const { media: shown, messageId } = received!.data
  expect((await messageOf(number, messageId)).media.status).toBe('pending')
  const response = await media.call('GET', shown.id)
  expect([response.status, response.headers.get('retry-after')]).toEqual([409, '2'])
  expect(await media.codeOf('GET', shown.id)).toBe('media_pending')
  const early = number.instance.sendMedia({ to: newContact(), media: shown.id }, 'too-early')
  await expect(early).rejects.toMatchObject({ status: 409, code: 'media_pending', retryAfter: '2' })
  await until('the download to begin', async () => (await harness.network.scenario()).held.length === 1)
  await harness.network.misbehave({ kind: 'release' })
  expect(await hashOf(harness, number, shown.id)).toBe(sent.hash)
})

test('a call that waits for a file gets nothing once its key has expired', async () => {
  const key = { name: 'CRM', scopes: ['media'], expiresAt: new Date(Date.now() + 1_500).toISOString() }
  const created = await fetch(`${harness.service.url}/admin/v1/instances/${number.id}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(key),
  })
  const { data } = (await created.json()) as { data: { key: string } }
  await misbehave({ delayMs: 2_500 }, 1)
  const sent = await sendFrom(harness, number, newContact())
  const [received] = await until('the message', async () => {
    const events = await eventsOf(harness, number, sent.id)
    return events.length > 0 && events
  })
  const caller = new MediaClient(harness.service.url!, { token: data.key })
  expect(await caller.codeOf('GET', `${received!.data.media.id}?wait=20`)).toBe('invalid_token')
  expect(await hashOf(harness, number, received!.data.media.id)).toBe(sent.hash)
})

test.each([
  ['the media host fails', { error: '500' }, 1],
  ['the transfer is cut', 'cut', 2],
  ['a byte is altered', 'garble', 1],
  ['it is slow', { bytesPerSecond: 40_000 }, 1],
] as const)('the file is fetched in the end although %s', async (_, effect, times) => {
  await misbehave(effect, times)
  const sent = await sendFrom(harness, number, newContact())
  const events = await untilSettled(harness, number, sent.id)
  expect(events.map(({ event }) => event)).toEqual(['message.received', 'media.ready'])
  expect(await hashOf(harness, number, events[0]!.data.media.id)).toBe(sent.hash)
})

test('if WhatsApp no longer holds it, the phone is asked to upload it again', async () => {
  await misbehave({ delayMs: 500 }, 1)
  const sent = await sendFrom(harness, number, newContact())
  await harness.network.misbehave({ kind: 'expire_media', account: number.phone })
  const events = await untilSettled(harness, number, sent.id)
  expect(events.map(({ event }) => event)).toEqual(['message.received', 'media.ready'])
  expect(await hashOf(harness, number, events[0]!.data.media.id)).toBe(sent.hash)
})

test('a file that the owner sends on the phone is fetched, even if the phone has to upload it again', async () => {
  await misbehave({ delayMs: 500 }, 1)
  const { bytes, mimetype } = sampleFile('document', 30_000)
  const media = { type: 'document' as const, mimetype, bytes }
  const to = newContact()
  await harness.network.writeAsOwner({ phone: number.phone, to, media })
  await harness.network.misbehave({ kind: 'expire_media', account: number.phone })
  const written = await until('the message', async () => {
    const events = await feedOf(harness, number)
    return events.find(({ event, data }) => event === 'message.written' && data.chat === to)
  })
  expect(await hashOf(harness, number, written.data.media.id)).toBe(sha256(bytes))
})

test('if the phone does not have it either, the file has failed, and the message stays', async () => {
  await harness.network.misbehave({ kind: 'media_retries', answer: 'not_found' })
  await misbehave({ error: '404' })
  const sent = await sendFrom(harness, number, newContact())
  const [received, failed] = await untilSettled(harness, number, sent.id)
  expect(failed).toMatchObject({ event: 'media.failed', data: { media: { error: { code: 'media_unavailable' } } } })
  const { id } = received!.data.media
  const { media: shown } = await messageOf(number, received!.data.messageId)
  expect(shown).toMatchObject({ id, status: 'failed', error: { code: 'media_unavailable' } })
  const response = await media.call('GET', id)
  expect(response.status).toBe(410)
  expect(await response.text()).toContain('did not upload it again')
})

test('a file whose bytes are never those of the message has failed as media_damaged', async () => {
  await misbehave('garble' as never)
  const sent = await sendFrom(harness, number, newContact())
  const [, failed] = await untilSettled(harness, number, sent.id)
  expect(failed).toMatchObject({ event: 'media.failed', data: { media: { error: { code: 'media_damaged' } } } })
})

test('an empty file has failed, and the reason says that it may be empty', async () => {
  const from = newContact()
  const file = { type: 'document' as const, mimetype: 'text/plain', bytes: Buffer.alloc(0) }
  const { id } = await harness.network.writeAs({ from, to: number.phone, media: file })
  const [, failed] = await untilSettled(harness, number, id)
  expect(failed!.data.media.error).toEqual({ code: 'media_damaged', message: expect.stringContaining('is empty') })
})

test('a file can be erased while it is being fetched', async () => {
  await misbehave({ delayMs: 1_000 }, 1)
  const sent = await sendFrom(harness, number, newContact())
  const [received] = await until('the message', async () => {
    const events = await eventsOf(harness, number, sent.id)
    return events.length > 0 && events
  })
  const { id } = received!.data.media
  await number.instance.eraseMedia(id)
  expect(await media.codeOf('GET', id)).toBe('media_gone')
  const next = await sendFrom(harness, number, newContact())
  await untilSettled(harness, number, next.id)
  expect(await media.codeOf('GET', id)).toBe('media_gone')
  expect((await messageOf(number, received!.data.messageId)).media.status).toBe('gone')
})

test('the same content in two messages is two files, and a received file can be sent on', async () => {
  const { bytes } = { bytes: Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(5_000, 7)]) }
  const file = { type: 'document' as const, mimetype: 'application/pdf', bytes }
  const ids: string[] = []
  for (const from of [newContact(), newContact()]) {
    const { id } = await harness.network.writeAs({ from, to: number.phone, media: file })
    ids.push((await untilSettled(harness, number, id))[0]!.data.media.id)
  }
  expect(new Set(ids).size).toBe(2)
  await number.instance.eraseMedia(ids[0]!)
  expect(await hashOf(harness, number, ids[1]!)).toBe(sha256(bytes))
  const to = newContact()
  await number.instance.sendMedia({ to, media: ids[1] }, `on-${to}`)
  const [shown] = await until('the file', async () => {
    const inbox = await harness.network.inbox(to)
    return inbox.length > 0 && inbox
  })
  expect(shown!.media?.sha256).toBe(sha256(bytes))
})

test('the event of a message whose file exceeds the quota says so, and later files are fetched', async () => {
  const sent = await sendFrom(harness, number, newContact(), 'document', { size: QUOTA_MB * 1_048_576 })
  const [received, ...more] = await untilSettled(harness, number, sent.id)
  expect(more).toEqual([])
  expect(received!.data.media.error?.code).toBe('media_quota_exceeded')
  expect(await media.codeOf('GET', received!.data.media.id)).toBe('media_gone')
  const small = await sendFrom(harness, number, newContact())
  const events = await untilSettled(harness, number, small.id)
  expect(await hashOf(harness, number, events[0]!.data.media.id)).toBe(small.hash)
})

test('deleting the instance erases its files', async () => {
  const other = await harness.link()
  const sent = await sendFrom(harness, other, newContact())
  await untilSettled(harness, other, sent.id)
  const folder = join(harness.service.dataDir, 'media')
  expect(readdirSync(folder)).toContain(other.id)
  await harness.service.admin.deleteInstance(other.id)
  await until('its files to be gone', () => !readdirSync(folder).includes(other.id))
})

test('the metrics show the stored bytes, the pending files and the failed ones by reason', async () => {
  const { url, adminKey } = harness.service
  const headers = { authorization: `Bearer ${adminKey}` }
  const metric = async (name: string) => {
    const text = await (await fetch(`${url}/metrics`, { headers })).text()
    return Number(
      text
        .split('\n')
        .find(line => line.startsWith(`${name} `))
        ?.slice(name.length),
    )
  }
  const used = async () => {
    const { data } = (await (
      await fetch(`${url}/admin/v1/instances/${number.id}/media-usage`, { headers })
    ).json()) as {
      data: { bytes: number }
    }
    return data.bytes
  }
  const failed = 'pombal_media_failed{reason="media_unavailable"}'
  const before = await metric(failed)
  await harness.network.misbehave({ kind: 'media_retries', answer: 'not_found' })
  await misbehave({ error: '410' })
  await untilSettled(harness, number, (await sendFrom(harness, number, newContact())).id)
  await harness.network.misbehave({ kind: 'clear' })
  await misbehave({ delayMs: 600_000 })
  const pending = await sendFrom(harness, number, newContact())
  await until('the message', async () => (await eventsOf(harness, number, pending.id)).length > 0)
  await until('the failed file to be counted', async () => (await metric(failed)) === before + 1)
  await until('the pending file to be counted', async () => (await metric('pombal_media_pending')) === 1)
  await until('the bytes', async () => (await used()) > 0 && (await metric('pombal_media_bytes')) >= (await used()))
})
