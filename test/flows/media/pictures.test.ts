import { readFileSync } from 'node:fs'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { hugePng } from '../../pictures/hostile-pictures.ts'
import { until } from '../../until.ts'
import { MediaClient } from './harness.ts'
import { sampleFile } from './sample-files.ts'

let harness: LinkedHarness
let number: LinkedNumber
beforeAll(async () => {
  harness = await LinkedHarness.open('sqlite')
  number = await harness.link()
})
afterAll(async () => harness?.[Symbol.asyncDispose]())

const picture = sharp({ create: { width: 400, height: 300, channels: 3, background: 'teal' } })

const isRead = (id: string) =>
  until(`${id} to be read`, async () => {
    const { status, error } = await number.instance.message(id)
    expect(error).toBeNull()
    return status === 'read'
  })

async function send(to: string, bytes: Uint8Array, message: object = {}) {
  const { id, media } = await number.instance.sendFile(to, bytes, message)
  await isRead(id)
  return { media, shown: (await harness.network.inbox(to)).at(-1)?.media }
}

async function sendText(
  body: object,
): Promise<{ status: number; body: { data: { id: string }; error: { code: string } } }> {
  const headers = { authorization: `Bearer ${number.instance.token}`, 'content-type': 'application/json' }
  const request = { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await fetch(`${harness.service.url}/v1/messages/text`, request)
  return { status: response.status, body: (await response.json()) as never }
}

async function isThumbnail(base64: string | undefined): Promise<void> {
  const bytes = Buffer.from(base64 ?? '', 'base64')
  expect(await sharp(bytes).metadata()).toMatchObject({ format: 'jpeg', width: 100, height: 75 })
}

test('an image arrives with its size and a thumbnail', async () => {
  const { shown } = await send('5511987660001', await picture.clone().jpeg().toBuffer(), { caption: 'x' })
  expect(shown).toMatchObject({ type: 'image', width: 400, height: 300 })
  await isThumbnail(shown?.thumbnail)
})

test('a picture that is sent as a document has a thumbnail, and a sticker its size', async () => {
  const to = '5511987660002'
  const png = await picture.clone().png().toBuffer()
  await isThumbnail((await send(to, png, { as: 'document', caption: 'y' })).shown?.thumbnail)
  const webp = await picture.clone().webp().toBuffer()
  expect((await send(to, webp, { as: 'sticker' })).shown).toMatchObject({ type: 'sticker', width: 400, height: 300 })
})

test('a picture that cannot be decoded is sent as it is, without a thumbnail', async () => {
  const to = '5511987660003'
  for (const bytes of [sampleFile('image', 5_000).bytes, hugePng(30_000, 30_000, { unpacked: 1_000_000 })]) {
    const { shown } = await send(to, bytes)
    expect(shown).toMatchObject({ type: 'image', size: bytes.length })
    expect(shown).not.toHaveProperty('thumbnail')
    expect(shown).not.toHaveProperty('width')
  }
})

test('a preview of a link shows its image', async () => {
  const to = '5511987660004'
  const client = new MediaClient(harness.service.url!, number.instance)
  const image = (await client.upload(await picture.clone().webp().toBuffer())).body.data.id
  const preview = { url: 'https://example.com/a', title: 'Exemplo', image }
  const { body } = await sendText({ to, text: 'https://example.com/a', preview })
  await isRead(body.data.id)
  const [shown] = (await harness.network.inbox(to)) as unknown as {
    details: Record<string, { jpegThumbnail: string }>
  }[]
  await isThumbnail(shown?.details['extendedTextMessage']?.jpegThumbnail)
})

test('the image of a preview is kept until its message is sent', async () => {
  const client = new MediaClient(harness.service.url!, number.instance)
  const image = (await client.upload(await picture.clone().gif().toBuffer())).body.data.id
  const preview = { url: 'https://example.com', title: 'Later', image }
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const { body } = await sendText({ to: '5511987660005', text: 'https://example.com', preview, sendAt })
  expect(await client.codeOf('DELETE', image)).toBe('media_in_use')
  const found = await number.instance.message(body.data.id)
  expect(found).not.toHaveProperty('media')
})

test('the image of a preview must be a picture of this instance', async () => {
  const client = new MediaClient(harness.service.url!, number.instance)
  const pdf = (await client.upload(sampleFile('document', 1_000).bytes)).body.data.id
  for (const [image, status, code] of [
    ['nothing', 404, 'media_not_found'],
    ['med_01kb3zq4m8a7c9x2e5g6h8j0k1', 404, 'media_not_found'],
    [pdf, 422, 'media_unsupported'],
  ] as const) {
    const preview = { url: 'https://example.com', title: 'x', image }
    const answer = await sendText({ to: '5511987660006', text: 'x', preview })
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
  }
})

test.runIf(process.platform === 'linux')('the service never loads the decoder itself', async () => {
  await send('5511987660007', await picture.clone().png().toBuffer())
  expect(readFileSync(`/proc/${harness.service.pid}/maps`, 'utf8')).not.toContain('libvips')
})
