import { createHash, randomBytes } from 'node:crypto'
import { Agent } from 'node:https'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { until } from '../../../simulator/test/wait.ts'
import { jid, link, startSimulator } from '../../../simulator/test/world.ts'
import { MEDIA_FORMS, type MediaForm } from '../../../src/domain/media.ts'
import { decodeContent } from '../../../src/whatsapp/baileys/encode-content.ts'
import {
  AlteredFile,
  decryptFromWhatsapp,
  encryptedSize,
  encryptForWhatsapp,
  hashForWhatsapp,
} from '../../../src/whatsapp/baileys/media/cipher.ts'
import { encodeFile } from '../../../src/whatsapp/baileys/media/content.ts'
import { type UploadOptions, uploadFile } from '../../../src/whatsapp/baileys/media/upload.ts'
import { CONDITION_WITHIN_MS } from '../../deadlines.ts'

const CONTACT = '5511999990001'
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

async function* inParts(bytes: Uint8Array, size = 65_536): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function collect(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const part of parts) all.push(part)
  return Buffer.concat(all)
}

describe('the encryption of a file for WhatsApp', () => {
  test('gives the same bytes every time, of a size known in advance, and opens again', async () => {
    const property = fc.asyncProperty(
      fc.nat(70_000),
      fc.integer({ min: 1, max: 70_000 }),
      fc.constantFrom(...MEDIA_FORMS),
      async (size, part, form) => {
        const [key, plain] = [randomBytes(32), randomBytes(size)]
        const sealed = await collect(encryptForWhatsapp(key, form, inParts(plain, part)))
        expect(sealed.equals(await collect(encryptForWhatsapp(key, form, inParts(plain))))).toBe(true)
        expect(sealed.length).toBe(encryptedSize(size))
        const hashes = { sha256: sha256(plain), encSha256: sha256(sealed) }
        expect(Buffer.from(await hashForWhatsapp(key, form, inParts(plain))).equals(hashes.encSha256)).toBe(true)
        const opened = await collect(decryptFromWhatsapp(key, form, inParts(sealed, part), hashes))
        expect(opened.equals(plain)).toBe(true)
        const at = part % sealed.length
        sealed[at]! ^= 1
        await expect(collect(decryptFromWhatsapp(key, form, inParts(sealed, part), hashes))).rejects.toThrow(
          AlteredFile,
        )
      },
    )
    await fc.assert(property, { numRuns: 30 })
  })
})

describe('a file that is uploaded to WhatsApp', () => {
  async function start() {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const options: UploadOptions = {
      connect: renew => client.sock.refreshMediaConn(renew),
      simulated: true,
      openAgent: () => new Agent({ rejectUnauthorized: false }),
      signal: AbortSignal.timeout(CONDITION_WITHIN_MS),
    }
    return { simulator, client, options }
  }

  async function fileOf(plain: Uint8Array, form: MediaForm = 'image') {
    const mediaKey = randomBytes(32)
    const encSha256 = await hashForWhatsapp(mediaKey, form, inParts(plain))
    return { form, mediaKey, encSha256, size: plain.length, open: async () => inParts(plain) }
  }

  test.each(MEDIA_FORMS)('arrives in a message as it was: %s', async form => {
    const { simulator, client, options } = await start()
    const plain = randomBytes(150_000)
    const file = await fileOf(plain, form)
    const uploaded = await uploadFile(file, options)
    const caption = form === 'image' || form === 'video' || form === 'document' ? 'a caption' : ''
    const content = encodeFile({
      ...file,
      ...uploaded,
      sha256: sha256(plain),
      uploadedAt: Date.now(),
      mimetype: 'x/y',
      filename: 'a.bin',
      caption,
    })
    const id = randomBytes(9).toString('hex').toUpperCase()
    await client.sock.relayMessage(jid(CONTACT), decodeContent(content), { messageId: id })
    const found = await until(async () => (await simulator.inbox(CONTACT)).find(message => message.id === id))
    expect(found.media).toMatchObject({
      type: form,
      mimetype: 'x/y',
      size: 150_000,
      sha256: sha256(plain).toString('hex'),
    })
    expect(found.media?.problem).toBeUndefined()
    expect(found.media?.caption ?? '').toBe(caption)
    if (form === 'document') expect(found.media?.filename).toBe('a.bin')
  })

  test('gets a new authorization when the known one has expired', async () => {
    const { simulator, options } = await start()
    const file = await fileOf(randomBytes(1_000))
    await uploadFile(file, options)
    await simulator.misbehave({ kind: 'expire_media_auth' })
    expect(await uploadFile(file, options)).toMatchObject({ directPath: expect.any(String) })
  })

  test('is not uploaded to a host of somebody else', async () => {
    const { options } = await start()
    const file = await fileOf(randomBytes(1_000))
    await expect(uploadFile(file, { ...options, simulated: false })).rejects.toThrow('names no media host')
  })

  test('is refused if its bytes have changed since they were first encrypted', async () => {
    const { options } = await start()
    const file = await fileOf(randomBytes(1_000))
    const changed = { ...file, open: async () => inParts(randomBytes(1_000)) }
    await expect(uploadFile(changed, options)).rejects.toThrow('answered 400')
  })
})
