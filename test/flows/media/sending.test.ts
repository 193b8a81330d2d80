import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MEDIA_FORMS } from '../../../src/domain/media.ts'
import { ApiError } from '../../api-client.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { eventOf } from '../../receiver.ts'
import { until } from '../../until.ts'
import { MediaClient, sha256 } from './harness.ts'
import { sampleFile } from './sample-files.ts'

const CONTACT = '5511987654321'
const ECHO = '15005550005'

let harness: LinkedHarness
let number: LinkedNumber
beforeAll(async () => {
  harness = await LinkedHarness.open('sqlite')
  number = await harness.link()
})
afterAll(async () => harness?.[Symbol.asyncDispose]())

const becomes = (id: string, ...states: string[]) =>
  until(`${id} to be ${states.join(' or ')}`, async () => {
    const found = await number.instance.message(id)
    return states.includes(found.status) && found
  })

async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => null,
    caught => caught,
  )
  if (!(error instanceof ApiError)) throw error
  return `${error.status} ${error.code}`
}

test.each(MEDIA_FORMS)('a file arrives as it was: %s', async form => {
  const { bytes, mimetype } = sampleFile(form)
  const to = `55119876500${MEDIA_FORMS.indexOf(form)}0`
  const caption = ['image', 'video', 'document'].includes(form) ? { caption: 'um recado ✓' } : {}
  const { id, media } = await number.instance.sendFile(to, bytes, { as: form, filename: 'a b.pdf', ...caption })
  expect(await becomes(id, 'read')).toMatchObject({
    text: caption.caption ?? '',
    media: { id: media, as: form, filename: 'a b.pdf' },
  })
  const [shown, ...others] = await harness.network.inbox(to)
  expect(others).toEqual([])
  expect(shown?.media).toMatchObject({ type: form, mimetype, size: bytes.length, sha256: sha256(bytes), ...caption })
  if (form === 'document') expect(shown?.media?.filename).toBe('a b.pdf')
  expect(shown?.media?.problem).toBeUndefined()
})

test('the content decides how a file is shown, unless the caller does', async () => {
  const to = '5511987650100'
  const files = (['image', 'video', 'audio', 'document'] as const).map(form => ({ form, ...sampleFile(form, 3_000) }))
  for (const { bytes } of files) await number.instance.sendFile(to, bytes)
  const { id } = await number.instance.sendFile(to, files[0]!.bytes, { as: 'document' })
  await becomes(id, 'read')
  const shown = (await harness.network.inbox(to)).map(({ media }) => media?.type)
  expect(shown).toEqual(['image', 'video', 'audio', 'document', 'document'])
})

test('files and texts to a contact keep their order', async () => {
  const to = '5511987650200'
  const { instance } = number
  await instance.sendFile(to, sampleFile('image', 400_000).bytes, { caption: '1' })
  await instance.send(to, '2')
  await instance.sendFile(to, sampleFile('document', 10).bytes, { caption: '3' })
  const { id } = await instance.send(to, '4')
  await becomes(id, 'read')
  const shown = (await harness.network.inbox(to)).map(({ text, media }) => media?.caption ?? text)
  expect(shown).toEqual(['1', '2', '3', '4'])
})

test('audio that WhatsApp does not play as a voice note is sent as audio, and the answer says why', async () => {
  const { instance } = number
  const to = '5511987650150'
  const { media } = await instance.sendFile(to, sampleFile('audio', 2_000).bytes)
  const send = async () => {
    const headers = {
      authorization: `Bearer ${instance.token}`,
      'idempotency-key': 'v',
      'content-type': 'application/json',
    }
    const body = JSON.stringify({ to, media, as: 'voice' })
    const response = await fetch(`${harness.service.url}/v1/messages/media`, { method: 'POST', headers, body })
    return ((await response.json()) as { data: { id: string; note?: string } }).data
  }
  const sent = await send()
  expect(sent.note).toMatch(/Ogg with Opus/)
  expect(await send()).toEqual(sent)
  expect(await becomes(sent.id, 'read')).toMatchObject({ media: { as: 'audio', note: sent.note } })
  expect((await harness.network.inbox(to)).map(({ media }) => media?.type)).toEqual(['audio', 'audio'])
})

test('a file that WhatsApp does not show, or that does not exist, is refused', async () => {
  const { instance } = number
  const { bytes } = sampleFile('image', 2_000)
  expect(await refusalOf(instance.sendFile(CONTACT, bytes, { as: 'voice' }))).toBe('422 media_unsupported')
  expect(await refusalOf(instance.sendFile(CONTACT, bytes, { as: 'poster' }))).toBe('400 invalid_request')
  const audio = sampleFile('audio', 2_000).bytes
  expect(await refusalOf(instance.sendFile(CONTACT, audio, { caption: 'x' }))).toBe('422 media_unsupported')
  for (const media of ['med_01kb3zq4m8a7c9x2e5g6h8j0k1', 'nothing'])
    expect(await refusalOf(instance.sendFile(CONTACT, bytes, { media }))).toBe('404 media_not_found')
  const other = await harness.link()
  const { media } = await instance.sendFile(CONTACT, bytes)
  expect(await refusalOf(other.instance.sendFile(CONTACT, bytes, { media }))).toBe('404 media_not_found')
})

test('an idempotency key returns the first message, even once the file is erased', async () => {
  const { instance } = number
  const to = '5511987650300'
  const { id, media } = await instance.sendFile(to, sampleFile('image', 2_000).bytes)
  await becomes(id, 'read')
  const body = { to, media, caption: 'once' }
  const first = await instance.sendMedia(body, 'a-key')
  await becomes(first.id, 'read')
  await instance.eraseMedia(media)
  expect(await instance.sendMedia(body, 'a-key')).toEqual({ id: first.id, replayed: true })
  expect(await refusalOf(instance.sendMedia({ ...body, caption: 'twice' }, 'a-key'))).toBe('422 idempotency_key_reused')
  expect(await refusalOf(instance.sendMedia(body, 'another-key'))).toBe('404 media_not_found')
})

test.each([
  ['413', 'media_too_large'],
  ['415', 'media_unsupported'],
])('a media host that answers %s fails the message as %s', async (error, code) => {
  await harness.network.misbehave({ kind: 'rule', rule: { when: { stanza: 'upload' }, do: { error } } })
  const { id } = await number.instance.sendFile(CONTACT, sampleFile('image', 2_000).bytes)
  expect((await becomes(id, 'failed', 'read')).error?.code).toBe(code)
  await harness.network.misbehave({ kind: 'clear' })
})

test('a media host that fails for a time delays the message and nothing else', async () => {
  const rule = { when: { stanza: 'upload', times: 2 }, do: { error: '500' } }
  await harness.network.misbehave({ kind: 'rule', rule })
  const { id } = await number.instance.sendFile('5511987650400', sampleFile('image', 2_000).bytes)
  await becomes((await number.instance.send(CONTACT, 'meanwhile')).id, 'read')
  expect((await becomes(id, 'read')).error).toBeNull()
  await harness.network.misbehave({ kind: 'clear' })
})

test('a file that is uploaded again while its message waits is sent', async () => {
  const { instance } = number
  await harness.network.misbehave({
    kind: 'rule',
    rule: { when: { stanza: 'upload', times: 1 }, do: { error: '500' } },
  })
  const { bytes } = sampleFile('image', 2_000)
  const { id, media } = await instance.sendFile('5511987650600', bytes)
  const again = await instance.sendFile('5511987650601', bytes)
  expect(again.media).toBe(media)
  for (const each of [id, again.id]) expect((await becomes(each, 'read', 'failed')).error).toBeNull()
  await harness.network.misbehave({ kind: 'clear' })
})

test('a file that is missing in the storage fails the message as media_unavailable', async () => {
  const { instance } = number
  await harness.network.misbehave({ kind: 'rule', rule: { when: { stanza: 'upload' }, do: { error: '500' } } })
  const { id } = await instance.sendFile('5511987650500', sampleFile('image', 2_000).bytes)
  await until('an upload to fail', async () =>
    (await harness.network.scenario()).rules.some(({ applied }) => applied > 0),
  )
  rmSync(join(harness.service.dataDir, 'media', number.id), { recursive: true })
  // Uploads still fail here: an upload that had already opened the file would otherwise succeed.
  expect((await becomes(id, 'failed', 'read')).error?.code).toBe('media_unavailable')
  await harness.network.misbehave({ kind: 'clear' })
})

test('the sandbox answers a file with the same file, which is fetched', async () => {
  const { service, receiver } = harness
  const { id, token } = await service.admin.createConnected()
  const instance = service.instance(id, token)
  await instance.setWebhook(receiver.url)
  const { bytes } = sampleFile('image')
  const sent = await instance.sendFile(ECHO, bytes, { caption: 'echo' })
  await until('the file to be read', async () => (await instance.message(sent.id)).status === 'read')
  const answer = await until('the answer', () =>
    receiver.requests.map(eventOf).find(({ event, data }) => event === 'message.received' && data.from === ECHO),
  )
  const { media } = answer.data as unknown as { media: { id: string } }
  const fetched = await new MediaClient(service.url!, instance).download(`${media.id}?wait=25`)
  expect(sha256(fetched.bytes)).toBe(sha256(bytes))
})
