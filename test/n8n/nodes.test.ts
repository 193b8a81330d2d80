import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { InstanceClient } from '../api-client.ts'
import { sampleFile } from '../flows/media/sample-files.ts'
import { createReceiver } from '../receiver.ts'
import { type Service, startService } from '../service.ts'
import { until } from '../until.ts'
import { activate, execute, PACKAGE, type Run, webhookTrigger } from './contexts.ts'

/** The compiled nodes against a running service. `npm run test:n8n` installs n8n's library and compiles them first. */

const IS_BUILT = ['node_modules/n8n-workflow', 'dist/nodes/Pombal/Pombal.node.js'].every(path =>
  existsSync(join(PACKAGE, path)),
)
const CONTACT = '5511987654321'
const KINDS = ['message.received']

describe.skipIf(!IS_BUILT)('the nodes of n8n', () => {
  let service: Service
  let id: string
  let instance: InstanceClient
  let credentials: { baseUrl: string; token: string }
  beforeAll(async () => {
    service = await startService()
    const created = await service.admin.createConnected()
    id = created.id
    instance = service.instance(id, created.token)
    credentials = { baseUrl: `${service.url}/`, token: created.token }
  })
  afterAll(() => service?.dispose())

  const act = (operation: string, parameters: object, more: object = {}) =>
    execute({ credentials, parameters: { operation, ...parameters }, ...more })
  const write = (text: string) => service.admin.writeAsContact(id, { from: CONTACT, text })
  const untilRead = (messageId: string) =>
    until(`${messageId} to be read`, async () => (await instance.message(messageId)).status === 'read')

  test('send a text to each item once, even if the run repeats the node', async () => {
    const parameters = { to: CONTACT, text: (item: number) => `WORD-${item}` }
    const items = [{ json: {} }, { json: {} }]
    const first = await act('sendText', parameters, { items, executionId: 'one' })
    const again = await act('sendText', parameters, { items, executionId: 'one' })
    const ids = first.map(({ json }) => json['id'])
    expect(new Set(ids).size).toBe(2)
    expect(again.map(({ json }) => json['id'])).toEqual(ids)
    const [other] = await act('sendText', { to: CONTACT, text: 'WORD-0' }, { executionId: 'other' })
    expect(ids).not.toContain(other!.json['id'])
    for (const message of ids) await untilRead(message as string)
    const [read] = await act('get', { messageId: ids[0] })
    expect(read!.json).toMatchObject({ id: ids[0], status: 'read', text: 'WORD-0', to: CONTACT })
  })

  test('reply, react, edit, mark as read and delete', async () => {
    await write('WORD-QUESTION')
    const question = await until('the question', async () =>
      (await service.admin.listEvents(id)).find(({ event }) => event === 'message.received'),
    )
    const messageId = question.messageId
    const [reply] = await act('reply', {
      to: CONTACT,
      messageId,
      text: 'WORD-ANSWER',
      options: { metadata: '{"order":7}' },
    })
    const answer = reply!.json['id'] as string
    await untilRead(answer)
    expect(await instance.message(answer)).toMatchObject({ quote: { messageId }, metadata: { order: 7 } })
    for (const [operation, parameters] of [
      ['react', { messageId, emoji: '🎉' }],
      ['markRead', { messageId }],
      ['edit', { messageId: answer, text: 'WORD-OTHER' }],
      ['react', { messageId, emoji: '' }],
      ['delete', { messageId: answer }],
    ] as const) {
      const [command] = await act(operation, parameters)
      expect(command!.json).toMatchObject({ id: expect.stringMatching(/^cmd_/), status: 'queued' })
    }
    await until(
      'the answer to be deleted',
      async () => (await act('get', { messageId: answer }))[0]!.json['deletedAt'] !== null,
    )
  })

  test('send a file of an item, by ID and with a caption, and download it', async () => {
    const { bytes, mimetype } = sampleFile('image', 30_000)
    const items = [{ json: {}, binary: { data: { bytes, mimeType: mimetype, fileName: 'foto é.jpg' } } }]
    const parameters = { to: CONTACT, source: 'binary', binaryProperty: 'data', options: { caption: 'WORD-CAPTION' } }
    const [sent] = await act('sendFile', parameters, { items, executionId: 'file' })
    const [again] = await act('sendFile', parameters, { items, executionId: 'file' })
    expect(again!.json['id']).toBe(sent!.json['id'])
    await untilRead(sent!.json['id'] as string)
    const [message] = await act('get', { messageId: sent!.json['id'] })
    expect(message!.json).toMatchObject({ text: 'WORD-CAPTION', media: { as: 'image' } })
    const { id: mediaId } = message!.json['media'] as { id: string }
    const [downloaded] = await act('download', { mediaId, outputProperty: 'file' })
    const file = downloaded!.binary!['file']!
    expect([file.fileName, file.mimeType, Buffer.compare(file.bytes, bytes)]).toEqual(['foto é.jpg', mimetype, 0])
    const byId = { to: CONTACT, source: 'media', mediaId, options: { as: 'document', filename: 'a.jpg' } }
    const [second] = await act('sendFile', byId)
    await untilRead(second!.json['id'] as string)
  })

  test('check numbers, and report a refusal', async () => {
    const found = await act('checkNumbers', { numbers: `${CONTACT}, 5511911112222` })
    expect(found.map(({ json }) => json['number'])).toEqual([CONTACT, '5511911112222'])
    await expect(act('sendText', { to: 'ana', text: 'x' })).rejects.toMatchObject({
      name: 'NodeApiError',
      httpCode: '400',
    })
  })

  test('a failed item has what Pombal answered, if the node continues', async () => {
    const continueOnFail = true
    const [failed] = await act('sendText', { to: 'ana', text: 'x' }, { continueOnFail })
    expect(failed!.json).toEqual({ error: expect.stringContaining('to'), code: 'invalid_phone_number', status: 400 })
    // The answer to a download is read as bytes.
    const [missing] = await act('download', { mediaId: 'med_none', outputProperty: 'file' }, { continueOnFail })
    expect(missing!.json).toEqual({ error: expect.any(String), code: expect.stringMatching(/^media_/), status: 404 })
    const [wrong] = await act('none', {}, { continueOnFail })
    expect(wrong!.json).toEqual({ error: 'Unknown operation: none' })
    const nowhere = { ...credentials, baseUrl: 'http://127.0.0.1:1' }
    const [away] = await act('get', { messageId: 'msg_none' }, { continueOnFail, credentials: nowhere })
    expect(away!.json).toEqual({ error: expect.any(String) })
  })

  test('start a run for each event of the feed in order, and lose none over a restart of n8n', async () => {
    const runs: Run[] = []
    const staticData = {}
    const options = {
      credentials,
      parameters: { events: KINDS, startWith: 'latest' },
      onRun: (run: Run) => runs.push(run),
    }
    const first = await activate({ ...options, staticData })
    // The cursor is stored before the first event, so events during a restart are not missed.
    expect(first.stored[0]).toMatchObject({ instanceId: id, cursor: expect.stringMatching(/^\d+\.\w{8}$/) })
    for (const text of ['WORD-ONE', 'WORD-TWO']) await write(text)
    await until('the first run', () => runs.length === 1)
    expect(runs[0]!.items).toMatchObject([
      { json: { id: expect.stringMatching(/^evt_/), event: 'message.received', data: { text: 'WORD-ONE' } } },
    ])
    runs[0]!.end()
    await until('the second run', () => runs.length === 2)
    // n8n is killed before the second run has ended. It has what it stored with the last run.
    await first.stop()
    await write('WORD-THREE')
    const second = await activate({ ...options, staticData: { ...first.stored.at(-1) } })
    onTestFinished(() => second.stop())
    for (const number of [3, 4]) {
      await until(`run ${number}`, () => runs.length === number)
      runs[number - 1]!.end()
    }
    const texts = runs.map(({ items }) => (items[0]!.json['data'] as { text: string }).text)
    expect(texts).toEqual(['WORD-ONE', 'WORD-TWO', 'WORD-TWO', 'WORD-THREE'])
    const ids = runs.map(({ items }) => items[0]!.json['id'])
    expect(ids[1]).toBe(ids[2])
  })

  test('repeat an event whose run n8n could not start', async () => {
    const runs: Run[] = []
    const parameters = { events: [...KINDS, 'message.sent'], startWith: 'latest' }
    const trigger = await activate({ credentials, parameters, staticData: {}, onRun: run => runs.push(run) })
    onTestFinished(() => trigger.stop())
    await write('WORD-AGAIN')
    await until('the run', () => runs.length === 1)
    runs[0]!.end(new Error('The database is away.'))
    await until('the same event', () => runs.length === 2)
    expect(runs[1]!.items).toEqual(runs[0]!.items)
    runs[1]!.end()
  })

  test('start no event twice after the cursor has expired', async () => {
    const runs: Run[] = []
    const texts = () => runs.map(({ items }) => (items[0]!.json['data'] as { text: string }).text)
    const options = {
      credentials,
      parameters: { events: KINDS, startWith: 'latest' },
      onRun(run: Run) {
        runs.push(run)
        run.end()
      },
    }
    const staticData: Record<string, unknown> = {}
    const first = await activate({ ...options, staticData })
    await write('WORD-BEFORE')
    await until('the first run', () => runs.length === 1)
    await first.stop()
    expect(staticData['eventId']).toBe(runs[0]!.items[0]!.json['id'])
    await write('WORD-MEANWHILE')
    // As after a restore that has undone the event of the cursor.
    const second = await activate({ ...options, staticData: { ...staticData, cursor: '999999999.00000000' } })
    onTestFinished(() => second.stop())
    await until('the second run', () => runs.length === 2)
    await write('WORD-AFTER')
    await until('the third run', () => runs.length === 3)
    expect(texts()).toEqual(['WORD-BEFORE', 'WORD-MEANWHILE', 'WORD-AFTER'])
  })

  test('start with new events only, even if the cursor expires before the first run', async () => {
    await write('WORD-OLD')
    const writtenAt = Date.now()
    // The activation is known to the second.
    await until('the next second', () => Date.now() > writtenAt + 1_000)
    const texts: unknown[] = []
    const options = {
      credentials,
      parameters: { events: KINDS, startWith: 'latest' },
      onRun({ items, end }: Run) {
        texts.push((items[0]!.json['data'] as { text: string }).text)
        end()
      },
    }
    const first = await activate({ ...options, staticData: {} })
    await first.stop()
    await write('WORD-NEW')
    const second = await activate({ ...options, staticData: { ...first.stored[0], cursor: '999999999.00000000' } })
    onTestFinished(() => second.stop())
    await until('the run', () => texts.includes('WORD-NEW'))
    expect(texts).toEqual(['WORD-NEW'])
  })

  test('run the trigger of the feed by hand without moving its cursor', async () => {
    const runs: Run[] = []
    const staticData = { cursor: '1' }
    const parameters = { events: KINDS, startWith: 'latest' }
    const trigger = await activate({
      credentials,
      parameters,
      staticData,
      mode: 'manual',
      onRun: run => runs.push(run),
    })
    const once = trigger.runOnce()
    // The poll may begin a moment later than this, so it is repeated.
    await until('the run', async () => {
      if (runs.length === 0) await write('WORD-BY-HAND')
      return runs.length > 0
    })
    await once
    await trigger.stop()
    expect(runs).toHaveLength(1)
    expect(staticData).toEqual({ cursor: '1' })
  })

  test('begin as configured if the credential belongs to another instance', async () => {
    const other = await service.admin.createConnected()
    for (const startWith of ['latest', 'oldest']) {
      const runs: Run[] = []
      const staticData = { instanceId: other.id, cursor: '0' }
      const parameters = { events: KINDS, startWith }
      const trigger = await activate({ credentials, parameters, staticData, onRun: run => runs.push(run) })
      onTestFinished(() => trigger.stop())
      const cursor = startWith === 'oldest' ? '' : expect.stringMatching(/^\d+\.\w{8}$/)
      expect(trigger.stored[0]).toMatchObject({ instanceId: id, cursor })
      await write(`WORD-${startWith}`)
      await until('a run', () => runs.length === 1)
      const isNew = (runs[0]!.items[0]!.json['data'] as { text: string }).text === 'WORD-latest'
      expect(isNew).toBe(startWith === 'latest')
      await trigger.stop()
      runs[0]!.end()
    }
  })

  test('a webhook of another instance is registered anew, and only its own one is deleted', async () => {
    const other = await service.admin.createConnected()
    const staticData: Record<string, unknown> = {}
    const options = { parameters: { events: KINDS }, staticData, url: 'http://n8n.example/hook' }
    const former = webhookTrigger({ ...options, credentials: { ...credentials, token: other.token } })
    await former.create()
    const trigger = webhookTrigger({ ...options, credentials })
    const formerId = staticData['endpointId']
    expect(await trigger.checkExists()).toBe(false)
    await trigger.create()
    expect(staticData).toMatchObject({ instanceId: id })
    expect(staticData['endpointId']).not.toBe(formerId)
    expect(await trigger.checkExists()).toBe(true)
    expect(await trigger.remove()).toBe(true)
    expect(staticData).toEqual({ former: expect.any(Array) })
  })

  test('end the trigger of the feed with an error if the token is wrong', async () => {
    const errors: Error[] = []
    const parameters = { events: KINDS, startWith: 'oldest' }
    const wrong = { ...credentials, token: 'wrong' }
    await activate({ credentials: wrong, parameters, staticData: {}, onRun() {}, onError: error => errors.push(error) })
    await until('the error', () => errors.length === 1)
    expect(errors[0]).toMatchObject({ name: 'NodeApiError', httpCode: '401' })
  })

  test('register an endpoint, accept what Pombal posts to it, and remove it', async () => {
    const receiver = await createReceiver()
    onTestFinished(() => receiver.close())
    const staticData: Record<string, unknown> = {}
    const parameters = { events: KINDS }
    const trigger = webhookTrigger({ credentials, parameters, staticData, url: receiver.url })
    expect(await trigger.checkExists()).toBe(false)
    expect(await trigger.create()).toBe(true)
    expect(await trigger.checkExists()).toBe(true)
    const endpoints = async () => {
      const response = await fetch(`${service.url}/v1/webhooks/${id}/endpoints`, {
        headers: { authorization: `Bearer ${credentials.token}` },
      })
      return ((await response.json()) as { data: { id: string; url: string; description: string }[] }).data
    }
    expect(await endpoints()).toContainEqual(
      expect.objectContaining({ id: staticData['endpointId'], url: receiver.url, description: 'n8n: Orders' }),
    )
    await write('WORD-POSTED')
    await receiver.waitFor(1)
    const [{ headers, body }] = receiver.requests as [(typeof receiver.requests)[number]]
    const accepted = await trigger.receive(headers, body)
    expect(accepted).toMatchObject({
      status: 200,
      items: [{ json: { id: headers['webhook-id'], data: { text: 'WORD-POSTED' } } }],
    })
    const forged = Buffer.from(body.toString().replace('WORD-POSTED', 'WORD-FORGED'))
    expect(await trigger.receive(headers, forged)).toEqual({ status: 401, items: [] })
    expect(await trigger.receive({ ...headers, 'webhook-signature': undefined }, body)).toEqual({
      status: 401,
      items: [],
    })
    // With another address of n8n, the endpoint is not this one.
    expect(await webhookTrigger({ credentials, parameters, staticData, url: `${receiver.url}/x` }).checkExists()).toBe(
      false,
    )
    expect(
      await webhookTrigger({
        credentials,
        parameters: { events: ['message.read'] },
        staticData,
        url: receiver.url,
      }).checkExists(),
    ).toBe(false)
    expect(await trigger.remove()).toBe(true)
    expect(staticData).toEqual({
      former: [{ secret: expect.stringMatching(/^whsec_/), instanceId: id, until: expect.any(Number) }],
    })
    expect((await endpoints()).map(({ url }) => url)).not.toContain(receiver.url)
    expect(await trigger.remove()).toBe(true)
    // The workflow is published again. Pombal completes the deliveries of the deleted endpoint.
    expect(await trigger.create()).toBe(true)
    expect(await trigger.receive(headers, body)).toMatchObject({ status: 200 })
    expect(await trigger.receive(headers, forged)).toMatchObject({ status: 401 })
    expect(await trigger.remove()).toBe(true)
  })
})
