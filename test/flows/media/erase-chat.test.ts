import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { until } from '../../until.ts'
import { MediaClient } from './harness.ts'
import { newContact, untilSettled } from './receiving-harness.ts'
import { sampleFile } from './sample-files.ts'

interface Answer {
  status: number
  body: { data: { erased: number; inUse: number }; error: { code: string } }
}

describe.each(ONE_STORE)('the files of a chat, on %s', store => {
  let harness: LinkedHarness
  let number: LinkedNumber
  let client: MediaClient
  let folder: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-chat-files-'))
    harness = await LinkedHarness.open(store, { env: { MEDIA_URL: pathToFileURL(folder).href } })
    number = await harness.link()
    client = new MediaClient(harness.service.url!, number.instance)
  })
  afterAll(async () => {
    await harness?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  async function erase(path: string, key: string): Promise<Answer> {
    const request = { method: 'DELETE', headers: { authorization: `Bearer ${key}` } }
    const response = await fetch(`${harness.service.url}${path}`, request)
    return { status: response.status, body: (await response.json()) as Answer['body'] }
  }
  const byToken = (chat: string) => erase(`/v1/chats/${chat}/media`, number.instance.token)

  async function receive(from: string): Promise<string> {
    const media = { type: 'document' as const, bytes: sampleFile('document', 2_000).bytes }
    const { id } = await harness.network.writeAs({ from, to: number.phone, media })
    const [received] = await untilSettled(harness, number, id)
    return received!.data.media.id
  }
  async function send(to: string): Promise<string> {
    const { id, media } = await number.instance.sendFile(to, sampleFile('document', 2_000).bytes)
    await until(`${id} to be read`, async () => (await number.instance.message(id)).status === 'read')
    return media
  }
  async function sendPreview(to: string): Promise<string> {
    const image = (await client.upload(sampleFile('image', 2_000).bytes)).body.data.id
    const preview = { url: 'https://example.com', title: 'Example', image }
    const response = await fetch(`${harness.service.url}/v1/messages/text`, {
      method: 'POST',
      headers: { authorization: `Bearer ${number.instance.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ instanceId: number.id, to, text: 'https://example.com', preview }),
    })
    const { id } = ((await response.json()) as { data: { id: string } }).data
    await until(`${id} to be read`, async () => (await number.instance.message(id)).status === 'read')
    return image
  }

  test('are erased together, received and sent, and those of other chats stay', async () => {
    const [contact, other] = [newContact(), newContact()]
    const files = [await receive(contact), await send(contact), await sendPreview(contact)]
    const others = [await receive(other), await send(other)]
    expect(await byToken(contact)).toEqual({ status: 200, body: { data: { erased: 3, inUse: 0 } } })
    for (const id of files) expect(await client.codeOf('GET', id)).toBe('media_gone')
    for (const id of others) expect((await client.download(id)).status).toBe(200)
    expect((await byToken(contact)).body.data).toEqual({ erased: 0, inUse: 0 })
    const path = `/admin/v1/instances/${number.id}/chats/${other}/media`
    expect((await erase(path, harness.service.adminKey)).body.data).toEqual({ erased: 2, inUse: 0 })
    for (const id of others) expect(await client.codeOf('GET', id)).toBe('media_gone')
  })

  test('stay while a queued message contains them', async () => {
    const contact = newContact()
    const sendAt = new Date(Date.now() + 3_600_000).toISOString()
    const { media } = await number.instance.sendFile(contact, sampleFile('document', 2_000).bytes, { sendAt })
    expect((await byToken(contact)).body.data).toEqual({ erased: 0, inUse: 1 })
    expect((await client.download(media)).status).toBe(200)
  })

  test('are not erased if the address is not a chat', async () => {
    const { status, body } = await byToken('ana')
    expect([status, body.error.code]).toEqual([400, 'invalid_request'])
  })
})
