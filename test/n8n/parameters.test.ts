import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { execute, PACKAGE } from './contexts.ts'

/** What the compiled node Pombal makes of its parameters. */

const IS_BUILT = ['node_modules/n8n-workflow', 'dist/nodes/Pombal/Pombal.node.js'].every(path =>
  existsSync(join(PACKAGE, path)),
)

describe.skipIf(!IS_BUILT)('the node Pombal', () => {
  /** Answers with the path, the idempotency key and the body of the request. */
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const data = { path: request.url, key: request.headers['x-idempotency-key'], ...JSON.parse(body || '{}') }
    const isList = request.url === '/v1/numbers/check'
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ data: isList ? [data] : data }))
  })
  beforeAll(async () => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  const act = async (operation: string, parameters: object, run: Partial<Parameters<typeof execute>[0]> = {}) => {
    const credentials = { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 'x' }
    const [result] = await execute({ credentials, parameters: { operation, ...parameters }, ...run })
    return result!.json
  }

  test('takes numbers where it expects texts', async () => {
    const options = { idempotencyKey: 7 }
    const sent = await act('sendText', { to: 5511987654321, text: 2_026, options })
    expect(sent).toMatchObject({ to: '5511987654321', text: '2026', key: '7' })
    const file = { to: 5511987654321, source: 'media', mediaId: ' med_a ', options: { caption: 1, filename: 2 } }
    const sentFile = await act('sendFile', file)
    expect(sentFile).toMatchObject({ to: '5511987654321', media: 'med_a', caption: '1', filename: '2' })
    expect(await act('checkNumbers', { numbers: 5511987654321 })).toMatchObject({ numbers: ['5511987654321'] })
    expect(await act('get', { messageId: 1 })).toMatchObject({ path: '/v1/messages/1' })
  })

  test('keeps the spaces of a text', async () => {
    expect(await act('sendText', { to: ' 5511987654321 ', text: ' a ' })).toMatchObject({
      to: '5511987654321',
      text: ' a ',
    })
  })

  test('names a parameter without a value', async () => {
    await expect(act('sendText', { to: null, text: 'a' })).rejects.toThrow("'to'")
  })

  test.each([
    ['2026-12-01T10:00:00', '2026-12-01T13:00:00.000Z'],
    ['2026-12-01 10:00', '2026-12-01T13:00:00.000Z'],
    ['2026-12-01T10:00:00+02:00', '2026-12-01T08:00:00.000Z'],
    ['2026-12-01T10:00:00Z', '2026-12-01T10:00:00.000Z'],
    [Date.UTC(2026, 11, 1, 10), '2026-12-01T10:00:00.000Z'],
  ])("in the workflow's time zone, Send At %s is %s", async (sendAt, sent) => {
    const parameters = { to: '5511987654321', text: 'a', options: { sendAt } }
    expect(await act('sendText', parameters, { timezone: 'America/Sao_Paulo' })).toMatchObject({ sendAt: sent })
  })

  test('refuses a Send At that is not a date', async () => {
    await expect(
      act('sendText', { to: '5511987654321', text: 'a', options: { sendAt: 'soon' } }),
    ).rejects.toMatchObject({
      name: 'NodeOperationError',
      message: 'Send At is not a valid date: soon',
    })
  })

  test('as a tool without an execution, sends each message under another key, unless the user has set one', async () => {
    const keyOf = async (options: object) =>
      (await act('sendText', { to: '5511987654321', text: 'a', options }, { executionId: null }))['key']
    expect(await keyOf({})).not.toBe(await keyOf({}))
    expect(await keyOf({ idempotencyKey: 'order-7' })).toBe('order-7')
  })

  test('as a tool of an agent, repeats its key in a retry, and has another key for another message', async () => {
    // n8n gives a retry another number, and messages for several items of the agent the same number.
    const keyOf = async (operation: string, parameters: object, round: number, executionId = 'agent-1') =>
      (await act(operation, parameters, { executionId, isTool: true, round }))['key']
    const ana = { to: '5511987654321', text: 'a' }
    const key = await keyOf('sendText', ana, 0)
    expect(await keyOf('sendText', ana, 1)).toBe(key)
    const others = [
      await keyOf('sendText', { ...ana, text: 'b' }, 0),
      await keyOf('sendText', { ...ana, to: '15005550005' }, 0),
      await keyOf('sendText', ana, 0, 'agent-2'),
      await keyOf('delete', { messageId: 'msg_1' }, 0),
      await keyOf('delete', { messageId: 'msg_2' }, 0),
      await keyOf('markRead', { messageId: 'msg_1' }, 0),
    ]
    expect(new Set([key, ...others]).size).toBe(7)
    expect(await keyOf('sendText', { ...ana, options: { idempotencyKey: 'order-7' } }, 0)).toBe('order-7')
  })
})
