/** Faults of the media host, and of phones that have to upload a file again, as an unmodified Baileys program sees them. */
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { request } from 'node:https'
import type { Action, Simulator } from '@pombal/simulator'
import { downloadContentFromMessage, encryptMediaRetryRequest, type WAMessage } from 'baileys'
import { describe, expect, it } from 'vitest'
import type { BaileysClient } from '../baileys-client.ts'
import { temporaryFolder } from '../temporary-folder.ts'
import { until } from '../wait.ts'
import { jid, link, startSimulator, statuses } from '../world.ts'
import { contents, download, files, received, sendContent, sha256, trust } from './media-world.ts'

const CONTACT = '5511999990001'

async function startLinked() {
  const simulator = await startSimulator()
  trust(simulator.media)
  return { simulator, client: await link(simulator, 'a') }
}

const fault = (simulator: Simulator, stanza: 'upload' | 'download', action: Action, times?: number) =>
  simulator.misbehave({ kind: 'rule', rule: { when: { stanza, ...(times && { times }) }, do: action } })

/** How many requests the first rule has seen. */
const requests = async (simulator: Simulator) => (await simulator.scenario()).rules[0]!.fitted

/** A file from the contact, as the client has received it. */
async function receiveFile(simulator: Simulator, client: BaileysClient, bytes = files.image): Promise<WAMessage> {
  const { id } = await simulator.writeAs({ from: CONTACT, to: client.phone, media: { type: 'image', bytes } })
  return until(() => received(client, id))
}

const fileOf = ({ message }: WAMessage) => message!.imageMessage!

describe('an upload', () => {
  it('with an expired authorization is refused, and succeeds with a new one', async () => {
    const { simulator, client } = await startLinked()
    await sendContent(client, jid(CONTACT), contents.image)
    await fault(simulator, 'upload', { delayMs: 0 })
    await simulator.misbehave({ kind: 'expire_media_auth' })
    await sendContent(client, jid(CONTACT), contents.image)
    expect(await requests(simulator)).toBe(2)
    await sendContent(client, jid(CONTACT), contents.image)
    expect(await requests(simulator)).toBe(3)
  })

  it.each<[string, Action]>([
    ['is refused', { error: '403' }],
    ['finds the host broken', { error: '507' }],
    ['gets an error code that is meant for stanzas', { error: '42' }],
    ['is cut in the middle', 'cut'],
    ['gets no answer, because the connection is lost', 'cut_after'],
    ['is altered on its way', 'garble'],
  ])('that %s succeeds on the other host', async (_, action) => {
    const { simulator, client } = await startLinked()
    await fault(simulator, 'upload', action, 1)
    const { key } = await sendContent(client, jid(CONTACT), contents.image)
    await until(() => statuses(client, key.id!).includes('read'))
    expect((await simulator.inbox(CONTACT))[0]?.media).toMatchObject({ sha256: sha256(files.image) })
    expect((await simulator.inbox(CONTACT))[0]?.media).not.toHaveProperty('problem')
    expect(await requests(simulator)).toBe(2)
  })

  it('that fails on every host sends no message', async () => {
    const { simulator, client } = await startLinked()
    await fault(simulator, 'upload', { error: '500' })
    await expect(sendContent(client, jid(CONTACT), contents.image)).rejects.toThrow('all hosts')
    expect(await simulator.inbox(CONTACT)).toEqual([])
  })
})

describe('a download', () => {
  it.each(['401', '403', '404', '410', '500'])('is refused with %s', async error => {
    const { simulator, client } = await startLinked()
    const message = await receiveFile(simulator, client)
    await fault(simulator, 'download', { error }, 1)
    await expect(download(message)).rejects.toMatchObject({ output: { statusCode: Number(error) } })
    expect(await download(message)).toEqual(files.image)
  })

  it('of one file fails, while those of others succeed', async () => {
    const { simulator, client } = await startLinked()
    const [first, second] = [await receiveFile(simulator, client), await receiveFile(simulator, client)]
    const when = { stanza: 'download', account: client.phone, attrs: { path: fileOf(first).directPath! } }
    await simulator.misbehave({ kind: 'rule', rule: { when, do: { error: '410' } } })
    await expect(download(first)).rejects.toMatchObject({ output: { statusCode: 410 } })
    expect(await download(second)).toEqual(files.image)
  })

  it('gets altered bytes of the same length', async () => {
    const { simulator, client } = await startLinked()
    const message = await receiveFile(simulator, client)
    await fault(simulator, 'download', 'garble', 1)
    const bytes = await download(message)
    expect(bytes).toHaveLength(files.image.length)
    expect(bytes).not.toEqual(files.image)
    expect(await download(message)).toEqual(files.image)
  })

  it('is cut after half of the bytes', async () => {
    const { simulator, client } = await startLinked()
    const { url } = fileOf(await receiveFile(simulator, client))
    await fault(simulator, 'download', 'cut')
    const response = await fetch(url!)
    const total = Number(response.headers.get('content-length'))
    let got = 0
    const read = async () => {
      for await (const chunk of response.body!) got += chunk.length
    }
    await expect(read()).rejects.toThrow()
    expect(got).toBeLessThanOrEqual(total / 2)
    expect(total).toBeGreaterThan(files.image.length)
  })

  it('is as slow as ordered', async () => {
    const { simulator, client } = await startLinked()
    const message = await receiveFile(simulator, client)
    await fault(simulator, 'download', { bytesPerSecond: 200_000 })
    const startAt = performance.now()
    expect(await download(message)).toEqual(files.image)
    expect(performance.now() - startAt).toBeGreaterThan((files.image.length / 200_000) * 900)
  })

  it('waits until it is released, or is never answered', async () => {
    const { simulator, client } = await startLinked()
    const message = await receiveFile(simulator, client)
    await fault(simulator, 'download', 'hold')
    const waiting = download(message)
    await until(async () => (await simulator.scenario()).held.length === 1)
    expect(await simulator.misbehave({ kind: 'release' })).toEqual({ released: 1 })
    expect(await waiting).toEqual(files.image)
    await simulator.misbehave({ kind: 'clear' })
    await fault(simulator, 'download', 'drop')
    const given = new AbortController()
    const unanswered = fetch(fileOf(message).url!, { signal: given.signal })
    await until(async () => (await requests(simulator)) === 1)
    given.abort()
    await expect(unanswered).rejects.toThrow('aborted')
  })
})

describe('the phone, asked to upload a file again,', () => {
  it('uploads it under another path, after which it can be downloaded', async () => {
    const { simulator, client } = await startLinked()
    const message = await receiveFile(simulator, client)
    const { directPath } = fileOf(message)
    await simulator.misbehave({ kind: 'expire_media', account: client.phone })
    await expect(download(message)).rejects.toMatchObject({ output: { statusCode: 410 } })
    // Without a known media host Baileys assumes that the new path is on WhatsApp's.
    await client.sock.refreshMediaConn()
    const again = await client.sock.updateMediaMessage(message)
    expect(fileOf(again).directPath).not.toBe(directPath)
    expect(await download(again)).toEqual(files.image)
  })

  it('also does so for a file that the client itself has sent', async () => {
    const { simulator, client } = await startLinked()
    const sent = await sendContent(client, jid(CONTACT), contents.image)
    await until(async () => (await simulator.inbox(CONTACT)).length === 1)
    expect(await download(await client.sock.updateMediaMessage(sent))).toEqual(files.image)
  })

  it.each([
    ['not_found', 404],
    ['decryption_error', 412],
    ['general_error', 418],
  ] as const)('refuses with %s', async (answer, statusCode) => {
    const { simulator, client } = await startLinked()
    const message = await receiveFile(simulator, client)
    await simulator.misbehave({ kind: 'media_retries', answer })
    await expect(client.sock.updateMediaMessage(message)).rejects.toMatchObject({ output: { statusCode } })
  })

  it('does not answer while it is off', async () => {
    const { simulator, client } = await startLinked()
    const message = await receiveFile(simulator, client)
    const acks: string[] = []
    client.sock.ws.on('CB:ack,class:receipt', ({ attrs }: { attrs: Record<string, string> }) => {
      if (attrs['type'] === 'server-error') acks.push(attrs['id']!)
    })
    await simulator.misbehave({ kind: 'media_retries', answer: 'none' })
    const updates: unknown[] = []
    client.sock.ev.on('messages.media-update', update => updates.push(update))
    const request = encryptMediaRetryRequest(message.key, fileOf(message).mediaKey!, client.state.creds.me!.id)
    await client.sock.sendNode(request)
    await until(() => acks.length === 1)
    await simulator.misbehave({ kind: 'clear' })
    await client.sock.updateMediaMessage(message)
    expect(updates).toHaveLength(1)
  })

  it('reports a request under another key as unreadable, and an unknown message as not found', async () => {
    const { simulator, client } = await startLinked()
    const message = await receiveFile(simulator, client)
    const updates: { error?: Error | undefined; media?: unknown }[] = []
    client.sock.ev.on('messages.media-update', update => updates.push(...update))
    const me = client.state.creds.me!.id
    await client.sock.sendNode(encryptMediaRetryRequest(message.key, randomBytes(32), me))
    await until(() => updates.length === 1)
    expect(updates[0]).toMatchObject({ media: { ciphertext: expect.anything() } })
    await client.sock.sendNode(encryptMediaRetryRequest({ ...message.key, id: '3A00' }, randomBytes(32), me))
    await until(() => updates.length === 2)
    expect(updates[1]).toMatchObject({ error: { output: { statusCode: 404 } } })
  })
})

describe('a message whose file', () => {
  it('is missing, or is not as stated, arrives with that problem and is not echoed', async () => {
    const { simulator, client } = await startLinked()
    const imageMessage = fileOf(await sendContent(client, jid(CONTACT), contents.image))
    const send = (changed: object) =>
      client.sock.relayMessage(jid('15005550005'), { imageMessage: { ...imageMessage, ...changed } }, {})
    await send({ directPath: '/v/t62.7118-24/1_0.enc' })
    for (const field of ['mediaKey', 'fileSha256', 'fileEncSha256']) await send({ [field]: randomBytes(32) })
    await send({ fileLength: 1 })
    await until(async () => (await simulator.inbox('15005550005')).length === 5)
    const problems = (await simulator.inbox('15005550005')).map(({ media }) => media?.problem)
    expect(problems).toEqual(['missing', 'altered', 'altered', 'altered', 'altered'])
    await client.send(jid('15005550005'), 'last')
    await until(() => client.texts().includes('last'))
    expect(client.seen.messages).toHaveLength(1)
  })
})

describe('the media host', () => {
  it('sends ranges of a file, so Baileys can decrypt a part of it', async () => {
    const { simulator, client } = await startLinked()
    const image = fileOf(await receiveFile(simulator, client))
    const part = await downloadContentFromMessage(image as never, 'image', { startByte: 1_000, endByte: 1_600 })
    const chunks: Buffer[] = []
    for await (const chunk of part) chunks.push(chunk)
    expect(Buffer.concat(chunks)).toEqual(files.image.subarray(1_000, 1_600))
    const whole = Buffer.from(await (await fetch(image.url!)).arrayBuffer())
    const last = await fetch(image.url!, { headers: { range: 'bytes=-10' } })
    expect([last.status, last.headers.get('content-range')]).toEqual([
      206,
      `bytes ${whole.length - 10}-${whole.length - 1}/${whole.length}`,
    ])
    expect(Buffer.from(await last.arrayBuffer())).toEqual(whole.subarray(-10))
    expect((await fetch(image.url!, { headers: { range: 'bytes=999999999-' } })).status).toBe(416)
  })

  it('keeps nothing of an upload whose client leaves', async () => {
    const mediaFolder = await temporaryFolder()
    const simulator = await startSimulator({ mediaFolder })
    trust(simulator.media)
    const client = await link(simulator, 'a')
    const { auth } = await client.sock.refreshMediaConn(true)
    const token = randomBytes(32).toString('base64url')
    const url = `https://${simulator.media.hosts[0]}/mms/video/${token}?auth=${auth}&token=${token}`
    const upload = request(url, { method: 'POST', headers: { 'content-length': 100_000 } })
    upload.on('error', () => undefined).write(randomBytes(50_000))
    await until(async () => (await readdir(mediaFolder)).length === 1, 'the partial file')
    upload.destroy()
    await until(async () => (await readdir(mediaFolder)).length === 0, 'its end')
  })

  it('refuses requests that it cannot serve', async () => {
    const { simulator, client } = await startLinked()
    const { url } = fileOf(await receiveFile(simulator, client))
    const [host] = simulator.media.hosts
    const { auth } = await client.sock.refreshMediaConn(true)
    const token = randomBytes(32).toString('base64url')
    const path = `https://${host}/mms/image/${token}?auth=${auth}&token=`
    const status = async (address: string, init?: RequestInit) => (await fetch(address, init)).status
    const post = { method: 'POST', body: 'x' }
    expect(await status(url!.split('?')[0]!)).toBe(403)
    expect(await status(`https://${host}/v/t62.7118-24/../../etc/passwd.enc`)).toBe(404)
    expect(await status(url!, { method: 'DELETE' })).toBe(405)
    expect(await status(path + token, post)).toBe(400)
    expect(await status(`${path}other`, post)).toBe(400)
    expect(await status(path + token, { method: 'POST' })).toBe(400)
    expect(await status((path + token).replace('image', 'nonsense'), post)).toBe(404)
    expect(await status(`https://${host}/mms/image/${token}?auth=1.9999999999.x&token=${token}`, post)).toBe(401)
  })
})
