import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { generate } from 'openapi-typescript-codegen'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiHarness } from './harness.ts'

let api: ApiHarness
const folder = mkdtempSync(join(tmpdir(), 'pombal-client-'))

beforeAll(async () => {
  api = await ApiHarness.start()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await api[Symbol.asyncDispose]()
})

/** The parts of a generated client that the test uses. */
interface Client {
  OpenAPI: { BASE: string; TOKEN?: string }
  MessagesService: {
    sendText(body: object, xIdempotencyKey?: string): Promise<{ data: { id: string; status: string } }>
    getMessage(id: string): Promise<{ data: { id: string; to: string; text: string } }>
  }
  ApiError: abstract new () => Error
}

const documentAt = async (path: string) => (await api.call({ path })).body

test.each([
  ['/openapi.json', '3.1'],
  ['/openapi-3.0.json', '3.0'],
])('%s is valid OpenAPI %s', async (path, version) => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(await documentAt(path))
  expect(errors).toBeUndefined()
  expect([valid, validator.version]).toEqual([true, version])
})

test('a document that is not valid OpenAPI is found', async () => {
  const document = await documentAt('/openapi-3.0.json')
  const { valid } = await new Validator().validate({ ...document, openapi: '3.0.3', webhooks: {} })
  expect(valid).toBe(false)
})

test('both versions describe the same operations, schemas and events', async () => {
  const [latest, older] = [await documentAt('/openapi.json'), await documentAt('/openapi-3.0.json')]
  const operations = (document: { paths: Record<string, object> }) =>
    Object.entries(document.paths).flatMap(([path, methods]) => Object.keys(methods).map(method => `${method} ${path}`))
  expect(operations(older)).toEqual(operations(latest))
  expect(Object.keys(older.components.schemas)).toEqual(Object.keys(latest.components.schemas))
  expect(Object.keys(older['x-webhooks'])).toEqual(Object.keys(latest.webhooks))
})

test('a field that may be null, a constant and an example are written as in 3.0', async () => {
  const { schemas } = (await documentAt('/openapi-3.0.json')).components
  const written = JSON.stringify(schemas)
  expect(written).not.toMatch(/"const":|"examples":|"null"/)
  expect(schemas.EventMessageReceived.properties.event).toMatchObject({ enum: ['message.received'] })
  expect(schemas.PasskeyStep.properties.code).toMatchObject({ type: 'string', nullable: true })
  expect(schemas.PasskeyStep.properties.request).toEqual({
    nullable: true,
    allOf: [{ $ref: '#/components/schemas/PasskeyRequest' }],
  })
})

test.each(['/openapi.json', '/openapi-3.0.json'])('a client generated from %s sends a message once', async path => {
  const output = join(folder, path.replaceAll(/\W/g, ''))
  await generate({ input: await documentAt(path), output, httpClient: 'fetch' })
  const { OpenAPI, MessagesService, ApiError }: Client = await import(join(output, 'index.ts'))
  OpenAPI.BASE = api.url
  const body = { to: '5511987654321', text: 'Olá!' }
  await expect(MessagesService.sendText(body)).rejects.toBeInstanceOf(ApiError)

  OpenAPI.TOKEN = (await api.createConnected()).token
  const first = await MessagesService.sendText(body, 'order-1')
  expect(first.data.status).toBe('queued')
  expect(await MessagesService.sendText(body, 'order-1')).toEqual(first)
  expect((await MessagesService.getMessage(first.data.id)).data).toMatchObject(body)
  await expect(MessagesService.sendText({ ...body, to: 'x' })).rejects.toMatchObject({
    status: 400,
    body: { error: { code: 'invalid_phone_number' } },
  })
})
