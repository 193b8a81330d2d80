import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noteSecret } from '../../../logs/log-capture.ts'
import type { ReceivedEvent } from '../../../receiver.ts'
import { type Service, startService } from '../../../service.ts'
import { until } from '../../../until.ts'
import { sampleFile } from '../../media/sample-files.ts'

/** A number that no instance's simulated phone has. */
const NUMBER = '5511912345678'

interface Feed {
  data: { body: ReceivedEvent }[]
}

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service?.dispose())

/** A sandbox instance whose number was unlinked, so that it can be linked again. */
async function createUnlinked(): Promise<{ id: string; phone: string | null }> {
  const { id } = await service.admin.createConnected()
  const { phone } = await service.admin.connection(id)
  await service.admin.logout(id)
  await service.admin.untilState(id, 'logged_out')
  return { id, phone }
}

async function post(path: string, body: object, headers: Record<string, string>) {
  const response = await fetch(service.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
  const { data }: any = await response.json()
  return { status: response.status, cookie: response.headers.get('set-cookie')?.split(';')[0] ?? '', data }
}

describe('the phone of a sandbox enters a pairing code by itself', () => {
  test('whichever number was given, and the instance is linked to its own number', async () => {
    const { id, phone } = await createUnlinked()
    expect(phone).toMatch(/^888/)
    await service.admin.connect(id, NUMBER)
    const connected = await service.admin.untilState(id, 'connected')
    expect(connected).toMatchObject({ phone, pairingCode: null, qr: null })
    await service.admin.writeAsContact(id, { from: NUMBER, text: 'hello' })
    await until('the message', async () => (await service.admin.listEvents(id, '?event=message.received'))[0])
  })

  test('when several instances show one for the same number at the same time', async () => {
    const instances = await Promise.all([createUnlinked(), createUnlinked(), createUnlinked()])
    await Promise.all(instances.map(({ id }) => service.admin.connect(id, NUMBER)))
    for (const { id, phone } of instances)
      expect(await service.admin.untilState(id, 'connected')).toMatchObject({ phone })
  })

  test('that the linking page shows', async () => {
    const { id } = await createUnlinked()
    const admin = { authorization: `Bearer ${service.adminKey}` }
    const made = await post(`/admin/v1/instances/${id}/links`, { expiresInMinutes: 5 }, admin)
    const [, token] = made.data.url.split('#')
    const { cookie } = await post('/link/read', { token }, {})
    noteSecret(token)
    noteSecret(cookie.split('=')[1])
    expect(await post('/link/start', { token, phone: NUMBER }, { cookie })).toMatchObject({ status: 202 })
    await until('the number to be linked', async () => (await post('/link/read', { token }, { cookie })).data.linked)
    await service.admin.untilState(id, 'connected')
  })
})

test('a message to another sandbox instance whose phone is off arrives when the phone is on', async () => {
  const [a, b] = [await service.admin.createConnected(), await service.admin.createConnected()]
  const { phone } = await service.admin.connection(b.id)
  await service.admin.switchPhone(b.id, false)
  await service.admin.untilState(b.id, 'reconnecting')
  const { id } = await service.instance(a.id, a.token).send(phone!, 'hello')
  await until(
    'the acknowledgement',
    async () => (await service.instance(a.id, a.token).message(id)).status !== 'queued',
  )
  await service.admin.switchPhone(b.id, true)
  await until('the message', async () => (await service.admin.listEvents(b.id, '?event=message.received'))[0])
})

test('another sandbox instance makes incoming files, reactions and edits', async () => {
  const [writer, reader] = [await service.admin.createConnected(), await service.admin.createConnected()]
  const { phone } = await service.admin.connection(reader.id)
  const instance = service.instance(writer.id, writer.token)
  const { id } = await instance.send(phone!, 'helo')
  await until('the text to be read', async () => (await instance.message(id)).status === 'read')
  const headers = { authorization: `Bearer ${writer.token}`, 'content-type': 'application/json' }
  const command = (method: string, path: string, body: object) =>
    fetch(`${service.url}/v1/messages/${path}`, { method, headers, body: JSON.stringify(body) })
  expect((await command('PUT', `${id}/reaction`, { emoji: '👍' })).status).toBe(202)
  expect((await command('PATCH', id, { text: 'hello' })).status).toBe(202)
  await instance.sendFile(phone!, sampleFile('image', 3_000).bytes)
  const token = { authorization: `Bearer ${reader.token}` }
  await until('the events', async () => {
    const { data } = (await (await fetch(`${service.url}/v1/events`, { headers: token })).json()) as Feed
    const seen = data.map(({ body: { event, data } }) => `${event} ${data['type'] ?? data['text']}`)
    const wanted = ['received text', 'received reaction', 'received image', 'edited hello']
    return wanted.every(end => seen.includes(`message.${end}`))
  })
})
