import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  EVENT_KINDS,
  failureBody,
  incomingBody,
  mediaBody,
  progressBody,
  testBody,
} from '../../../src/domain/events/event.ts'
import { INCOMING_TYPES } from '../../../src/domain/incoming-message.ts'
import { RECEIVING_FAILURES, type ReceivingFailure } from '../../../src/domain/media.ts'
import { FAILURE_CODES, messageFailure } from '../../../src/domain/message.ts'
import { ApiDocument, type OpenApi } from './document.ts'
import { ApiHarness } from './harness.ts'

let api: ApiHarness
let document: OpenApi

beforeAll(async () => {
  api = await ApiHarness.start()
  document = (await api.call({ path: '/openapi.json' })).body
})
afterAll(() => api[Symbol.asyncDispose]())

/** Every object in the document, with its path. */
function* walk(value: unknown, path = '#'): Generator<[path: string, value: Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  yield [path, value as Record<string, unknown>]
  for (const [key, inner] of Object.entries(value)) yield* walk(inner, `${path}/${key}`)
}

const OPEN: ReadonlySet<string> = new Set([
  'signIn',
  'acceptInvitation',
  'getSignInOptions',
  'startOidcSignIn',
  'finishOidcSignIn',
  'readLink',
  'startLink',
])

interface Schema {
  type?: string
  required?: string[]
  properties?: Record<string, Schema>
}
type Responses = Record<string, { content?: Record<string, { schema: Schema }> }>

function operations(): [string, string, Record<string, unknown> & OpenApi['paths'][string][string]][] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, string, typeof operation & Record<string, unknown>] => [
      method.toUpperCase(),
      path,
      operation as typeof operation & Record<string, unknown>,
    ]),
  )
}

describe('/openapi.json', () => {
  test('is OpenAPI 3.1 and names the service and its version', () => {
    expect(document).toMatchObject({ openapi: '3.1.0', info: { title: 'Pombal', version: '1.2.3' } })
  })

  test('lists every call of the contract and of the management API, and no other', () => {
    expect(
      operations()
        .map(([method, path]) => `${method} ${path}`)
        .sort(),
    ).toEqual(
      [
        'GET /healthz',
        'GET /readyz',
        'POST /v1/messages/text',
        'POST /v1/messages/media',
        'GET /v1/messages/{id}',
        'GET /v1/messages',
        'GET /v1/chats',
        'GET /v1/groups',
        'GET /v1/groups/{id}',
        'GET /v1/contacts',
        'POST /v1/numbers/check',
        'GET /admin/v1/instances/{id}/groups',
        'GET /admin/v1/instances/{id}/contacts',
        'PUT /v1/chats/{chat}/typing',
        'PUT /v1/messages/{id}/reaction',
        'DELETE /v1/messages/{id}/reaction',
        'PATCH /v1/messages/{id}',
        'DELETE /v1/messages/{id}',
        'POST /v1/messages/{id}/read',
        'GET /v1/commands/{id}',
        'GET /v1/events',
        'GET /v1/events/stream',
        'POST /v1/media',
        'GET /v1/media/{id}',
        'DELETE /v1/media/{id}',
        'DELETE /v1/chats/{chat}/media',
        'DELETE /admin/v1/instances/{id}/chats/{chat}/media',
        'GET /v1/instance',
        'GET /v1/webhooks/{instanceId}',
        'PUT /v1/webhooks/{instanceId}',
        'DELETE /v1/webhooks/{instanceId}',
        'POST /v1/webhooks/{instanceId}/endpoints',
        'GET /v1/webhooks/{instanceId}/endpoints',
        'GET /v1/webhooks/{instanceId}/endpoints/{endpointId}',
        'PATCH /v1/webhooks/{instanceId}/endpoints/{endpointId}',
        'DELETE /v1/webhooks/{instanceId}/endpoints/{endpointId}',
        'POST /v1/webhooks/{instanceId}/endpoints/{endpointId}/secret',
        'POST /v1/webhooks/{instanceId}/endpoints/{endpointId}/test',
        'POST /v1/webhooks/{instanceId}/endpoints/{endpointId}/retry',
        'POST /v1/deliveries/{deliveryId}/retry',
        'GET /v1/events/{eventId}',
        'POST /v1/events/{eventId}/redeliver',
        'POST /admin/v1/instances',
        'POST /admin/v1/instances/import',
        'GET /admin/v1/instances',
        'GET /admin/v1/instances/{id}',
        'PATCH /admin/v1/instances/{id}',
        'GET /admin/v1/instances/{id}/pace',
        'GET /admin/v1/instances/{id}/calls',
        'PUT /admin/v1/instances/{id}/calls',
        'GET /admin/v1/instances/{id}/proxy',
        'PUT /admin/v1/instances/{id}/proxy',
        'PUT /admin/v1/instances/{id}/pace',
        'DELETE /admin/v1/instances/{id}',
        'DELETE /admin/v1/instances/{id}/contacts/{contact}',
        'GET /admin/v1/instances/{id}/contacts/{contact}/export',
        'GET /admin/v1/instances/{id}/media',
        'POST /admin/v1/instances/{id}/media',
        'GET /admin/v1/instances/{id}/media-usage',
        'GET /admin/v1/instances/{id}/media/{mediaId}',
        'DELETE /admin/v1/instances/{id}/media/{mediaId}',
        'GET /admin/v1/instances/{id}/media/{mediaId}/content',
        'POST /admin/v1/instances/{id}/token',
        'GET /admin/v1/instances/{id}/keys',
        'POST /admin/v1/instances/{id}/keys',
        'DELETE /admin/v1/instances/{id}/keys/{keyId}',
        'POST /admin/v1/instances/{id}/connect',
        'POST /admin/v1/instances/{id}/connection/passkey',
        'POST /admin/v1/instances/{id}/connection/passkey/confirm',
        'POST /admin/v1/instances/{id}/links',
        'GET /admin/v1/instances/{id}/links',
        'DELETE /admin/v1/instances/{id}/links/{linkId}',
        'POST /link/passkey',
        'POST /link/passkey/confirm',
        'POST /link/read',
        'POST /link/start',
        'GET /admin/v1/instances/{id}/connection',
        'GET /admin/v1/instances/{id}/health',
        'GET /admin/v1/instances/{id}/connection/stream',
        'POST /admin/v1/instances/{id}/logout',
        'GET /admin/v1/instances/{id}/webhook',
        'PUT /admin/v1/instances/{id}/webhook',
        'POST /admin/v1/instances/{id}/webhook/secret',
        'GET /admin/v1/instances/{id}/endpoint-health',
        'POST /admin/v1/instances/{id}/endpoints',
        'GET /admin/v1/instances/{id}/endpoints',
        'GET /admin/v1/instances/{id}/endpoints/{endpointId}',
        'PATCH /admin/v1/instances/{id}/endpoints/{endpointId}',
        'DELETE /admin/v1/instances/{id}/endpoints/{endpointId}',
        'POST /admin/v1/instances/{id}/endpoints/{endpointId}/secret',
        'POST /admin/v1/instances/{id}/endpoints/{endpointId}/test',
        'POST /admin/v1/instances/{id}/endpoints/{endpointId}/retry',
        'POST /admin/v1/instances/{id}/deliveries/{deliveryId}/retry',
        'GET /admin/v1/instances/{id}/messages',
        'GET /admin/v1/instances/{id}/messages/{messageId}',
        'GET /admin/v1/instances/{id}/chats',
        'GET /admin/v1/instances/{id}/conversation',
        'GET /admin/v1/instances/{id}/messages/search',
        'DELETE /admin/v1/instances/{id}/messages/{messageId}',
        'DELETE /admin/v1/instances/{id}/messages/{messageId}/reaction',
        'PATCH /admin/v1/instances/{id}/messages/{messageId}',
        'POST /admin/v1/instances/{id}/messages/{messageId}/read',
        'PUT /admin/v1/instances/{id}/messages/{messageId}/reaction',
        'GET /admin/v1/instances/{id}/events',
        'GET /admin/v1/instances/{id}/events/{eventId}',
        'POST /admin/v1/instances/{id}/events/{eventId}/redeliver',
        'POST /admin/v1/instances/{id}/events/redeliver',
        'POST /admin/v1/instances/{id}/sandbox/incoming',
        'GET /admin/v1/instances/{id}/sandbox/conversations',
        'GET /admin/v1/instances/{id}/sandbox/phone',
        'PUT /admin/v1/instances/{id}/sandbox/phone',
        'POST /admin/v1/instances/{id}/messages',
        'POST /admin/v1/instances/{id}/webhook/test',
        'GET /admin/v1/instances/{id}/statistics',
        'GET /admin/v1/instances/{id}/deliveries/counts',
        'GET /admin/v1/activity',
        'GET /admin/v1/search',
        'GET /admin/v1/changes',
        'POST /admin/v1/session',
        'GET /admin/v1/session',
        'DELETE /admin/v1/session',
        'GET /admin/v1/endpoints',
        'POST /admin/v1/endpoints',
        'GET /admin/v1/endpoints/{id}',
        'PATCH /admin/v1/endpoints/{id}',
        'DELETE /admin/v1/endpoints/{id}',
        'POST /admin/v1/endpoints/{id}/secret',
        'POST /admin/v1/endpoints/{id}/test',
        'POST /admin/v1/endpoints/{id}/retry',
        'GET /admin/v1/alerts',
        'GET /admin/v1/alerts/rules',
        'PUT /admin/v1/alerts/rules/{rule}',
        'GET /admin/v1/alerts/targets',
        'POST /admin/v1/alerts/targets',
        'DELETE /admin/v1/alerts/targets/{id}',
        'POST /admin/v1/alerts/targets/{id}/test',
        'GET /admin/v1/sessions',
        'DELETE /admin/v1/sessions/{id}',
        'PUT /admin/v1/password',
        'POST /admin/v1/session/password',
        'GET /admin/v1/attention',
        'GET /admin/v1/audit',
        'DELETE /admin/v1/sessions',
        'GET /admin/v1/accounts',
        'POST /admin/v1/accounts',
        'PUT /admin/v1/accounts/{id}/access',
        'DELETE /admin/v1/accounts/{id}',
        'POST /admin/v1/accounts/{id}/invitation',
        'POST /admin/v1/invitations/accept',
        'GET /admin/v1/sign-in',
        'POST /admin/v1/session/oidc',
        'POST /admin/v1/session/oidc/finish',
        'GET /admin/v1/audit/check',
      ].sort(),
    )
  })

  test('every $ref resolves, and no internal key is left', () => {
    const paths = new Set([...walk(document)].map(([path]) => path))
    for (const [path, value] of walk(document)) {
      if (typeof value['$ref'] === 'string')
        expect(paths, `${path} refers to ${value['$ref']}`).toContain(value['$ref'])
      for (const key of ['x-refusals', 'x-rated', 'x-optional-body']) expect(value, path).not.toHaveProperty(key)
    }
  })

  test('every operation has its own ID, a summary, a known tag, and security', () => {
    const tags = new Set((document as unknown as { tags: { name: string }[] }).tags.map(({ name }) => name))
    const ids = operations().map(([, , operation]) => operation['operationId'])
    expect(new Set(ids).size).toBe(ids.length)
    for (const [method, path, operation] of operations()) {
      const isOpen = OPEN.has(String(operation['operationId'])) || !/^\/(v1|admin)\//.test(path)
      const wanted = isOpen ? [] : path.startsWith('/v1/') ? [{ token: [] }] : [{ adminKey: [] }]
      expect(operation['operationId'], `${method} ${path}`).toMatch(/^[a-z][A-Za-z]+$/)
      expect(operation['summary']).toEqual(expect.any(String))
      expect(operation['security']).toEqual(wanted)
      for (const tag of operation['tags'] as string[]) expect(tags).toContain(tag)
    }
    expect(document.components['securitySchemes']).toMatchObject({
      token: { type: 'http', scheme: 'bearer' },
      adminKey: { type: 'http', scheme: 'bearer' },
    })
  })

  test('every parameter in a path is declared', () => {
    for (const [method, path, operation] of operations()) {
      const declared = ((operation['parameters'] ?? []) as { in: string; name: string; required: boolean }[])
        .filter(parameter => parameter.in === 'path' && parameter.required)
        .map(({ name }) => name)
      const used = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      expect(declared.sort(), `${method} ${path}`).toEqual(used.sort())
    }
  })

  test('a download lists the headers that continue it', () => {
    const { responses, parameters } = document.paths['/v1/media/{id}']!['get'] as unknown as {
      responses: Record<string, { headers: object }>
      parameters: { name: string; in: string }[]
    }
    const sent = parameters.filter(parameter => parameter.in === 'header').map(({ name }) => name)
    expect(sent.sort()).toEqual(['If-None-Match', 'If-Range', 'Range'])
    expect(Object.keys(responses['206']!.headers)).toEqual(
      expect.arrayContaining(['ETag', 'Content-Range', 'Content-Disposition']),
    )
    expect(Object.keys(responses['409']!.headers)).toContain('Retry-After')
  })

  test('the send call lists every status, code and header of the contract', () => {
    const { responses, requestBody, parameters } = document.paths['/v1/messages/text']!['post'] as unknown as {
      responses: Record<string, { headers: object; content: { 'application/json': { examples?: object } } }>
      requestBody: { required: boolean }
      parameters: { name: string; in: string; required: boolean }[]
    }
    const codes = Object.fromEntries(
      Object.entries(responses).map(([status, { content }]) => [
        status,
        Object.keys(content['application/json'].examples ?? {}).sort(),
      ]),
    )
    expect(codes).toEqual({
      202: [],
      400: ['invalid_phone_number', 'invalid_request', 'quote_not_found'],
      401: ['invalid_token'],
      403: ['forbidden'],
      // For the image of a preview.
      404: ['media_not_found'],
      409: ['media_not_configured', 'media_pending'],
      413: ['payload_too_large'],
      415: ['unsupported_media_type'],
      422: ['idempotency_key_reused', 'instance_not_connected', 'media_unsupported'],
      429: ['rate_limit_exceeded'],
      500: ['internal_error'],
      503: ['service_unavailable'],
    })
    const rate = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'X-Request-Id']
    expect(Object.keys(responses['202']!.headers).sort()).toEqual(['Idempotent-Replayed', ...rate])
    expect(Object.keys(responses['429']!.headers).sort()).toEqual([...rate.slice(0, 3), 'Retry-After', 'X-Request-Id'])
    expect(Object.keys(responses['409']!.headers).sort()).toEqual([...rate.slice(0, 3), 'Retry-After', 'X-Request-Id'])
    expect(Object.keys(responses['401']!.headers).sort()).toEqual(['WWW-Authenticate', 'X-Request-Id'])
    expect(requestBody.required).toBe(true)
    expect(parameters).toMatchObject([
      { name: 'X-Idempotency-Key', in: 'header', required: false },
      { name: 'Idempotency-Key', in: 'header', required: false },
    ])
  })

  test('every list has nextCursor, which is null if the list is one page', () => {
    const isList = (schema: Schema) => schema.properties?.['data']?.type === 'array'
    const lists = operations().flatMap(([method, path, { responses }]) => {
      const schema = (responses as Responses)['200']?.content?.['application/json']?.schema ?? {}
      return method === 'GET' && isList(schema) ? [{ path, required: schema.required }] : []
    })
    expect(lists.length).toBeGreaterThan(20)
    for (const list of lists) expect(list).toMatchObject({ required: ['data', 'nextCursor'] })
  })

  test('an optional body is not required', () => {
    const required = (path: string) =>
      (document.paths[path]!['post'] as unknown as { requestBody: { required: boolean } }).requestBody.required
    expect(required('/admin/v1/instances')).toBe(false)
    expect(required('/admin/v1/instances/{id}/connect')).toBe(false)
    expect(required('/admin/v1/instances/{id}/events/redeliver')).toBe(true)
  })

  test('every example matches its schema', () => {
    const checker = new ApiDocument(document)
    for (const [path, value] of walk(document)) {
      if (typeof value['schema'] !== 'object' || value['schema'] === null) continue
      const examples = Object.values((value['examples'] ?? {}) as Record<string, { value: unknown }>)
      for (const { value: example } of examples) checker.checkSchema(path, value['schema'], example)
      if ('example' in value) checker.checkSchema(path, value['schema'], value['example'])
    }
    for (const [path, value] of walk(document.components['schemas'])) {
      if (Array.isArray(value['examples'])) {
        for (const example of value['examples']) checker.checkSchema(path, value, example)
      }
    }
  })
})

describe('the events', () => {
  const subject = { instanceId: 'inst_1', messageId: 'msg_1', to: '5511987654321' }

  function check(body: string): void {
    const checker = new ApiDocument(document)
    const parsed = JSON.parse(body)
    checker.checkSchema(
      body,
      document.webhooks[parsed.event]!.post.requestBody.content['application/json']!.schema,
      parsed,
    )
  }

  test('every kind is described, with its headers', () => {
    expect(Object.keys(document.webhooks)).toEqual([...EVENT_KINDS, 'webhook.test'])
    for (const { post } of Object.values(document.webhooks)) {
      const names = (post as unknown as { parameters: { name: string }[] }).parameters.map(({ name }) => name)
      expect(names.sort()).toEqual([
        'User-Agent',
        'X-Service-Attempt',
        'X-Service-Event',
        'X-Service-Signature',
        'traceparent',
        'webhook-id',
        'webhook-signature',
        'webhook-timestamp',
      ])
    }
  })

  test('objects written by the domain match their descriptions', () => {
    for (const instanceId of ['inst_1', null]) check(testBody(instanceId, 0))
    for (const reached of ['sent', 'delivered', 'read'] as const) check(progressBody(subject, reached, 0))
    for (const code of FAILURE_CODES) check(failureBody(subject, messageFailure(code, 421), 0))
    for (const type of INCOMING_TYPES) {
      const sender = { chat: '5511987654321', lid: null, username: null }
      check(incomingBody('inst_1', 'msg_1', { id: 'A', from: '5511987654321', type, sentAt: 0, ...sender }))
      check(
        incomingBody('inst_1', 'msg_1', {
          id: 'A',
          from: '12345',
          addressing: 'lid',
          type,
          text: 'x'.repeat(70_000),
          group: '1@g.us',
          name: 'n',
          chat: '1@g.us',
          lid: '12345@lid',
          username: 'n',
          sentAt: 0,
        }),
      )
    }
  })

  test('files of received messages match their description', () => {
    const known = { filename: 'a.pdf', seconds: 3, width: 4, height: 5 }
    for (const more of [known, { filename: null, seconds: null, width: null, height: null }])
      for (const failure of [null, ...(Object.keys(RECEIVING_FAILURES) as ReceivingFailure[])]) {
        const facts = { mimetype: 'application/pdf', size: 1, sha256: new Uint8Array(32), ...more }
        const media = { id: 'med_1', facts, failure }
        const sender = { chat: '5511987654321', lid: null, username: null }
        const message = { id: 'A', from: '5511987654321', type: 'document', sentAt: 0, ...sender } as const
        check(incomingBody('inst_1', 'msg_1', message, media))
        check(mediaBody('inst_1', { id: 'A', messageId: 'msg_1', chat: '5511987654321' }, media, 0))
      }
  })

  test('anything undescribed is detected', () => {
    expect(() => check(JSON.stringify({ ...JSON.parse(progressBody(subject, 'sent', 0)), more: 1 }))).toThrow()
    expect(() => check(progressBody(subject, 'sent', 0).replace('"status":"sent"', '"status":"read"'))).toThrow()
  })
})

describe('/docs', () => {
  test('is a page whose policy allows only this server, and its one inline script by digest', async () => {
    const page = await api.call({ path: '/docs/' })
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toMatch(/^text\/html/)
    const policy = page.headers.get('content-security-policy')!
    expect(policy).toContain("default-src 'none'")
    expect(policy).toMatch(/script-src 'self' 'sha256-[A-Za-z0-9+/]{43}='/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/https?:/)
    expect([...page.text.matchAll(/(?:src|href)="(https?:[^"]*)"/g)]).toEqual([])
    expect(page.text).toContain('<a href="/">← Pombal</a>')
    expect(page.text).not.toMatch(/cdn|fonts\.(googleapis|scalar)/)
  })

  test('its script is served by this server', async () => {
    const script = await api.call({ path: '/docs/js/scalar.js' })
    expect(script.status).toBe(200)
    expect(script.headers.get('content-type')).toMatch(/javascript/)
    expect(script.text.length).toBeGreaterThan(1_000_000)
  })

  test('without the trailing slash it redirects', async () => {
    const answer = await api.call({ path: '/docs' })
    expect([answer.status, answer.headers.get('location')]).toEqual([301, '/docs/'])
  })
})
