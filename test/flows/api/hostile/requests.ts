import fc from 'fast-check'

/** The part of the OpenAPI document that the generator uses. */
interface Document {
  paths: Record<string, Record<string, Operation>>
  components: { schemas?: Record<string, object> }
}
interface Operation {
  operationId: string
  parameters?: { in: string; name: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
}
interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  examples?: unknown[]
  minimum?: number
  maximum?: number
  properties?: Record<string, Schema>
}

export interface HostileCall {
  method: string
  /** Path and query. */
  target: string
  headers: Record<string, string>
  body: string
  /** `right`: the kind of key that the path requires; `none`; anything else is sent as the header's value. */
  authorization: string
}

export interface World {
  /** The instance that calls. */
  ownId: string
  /** Later requests need them, so they are not deleted. */
  keptIds: readonly string[]
  /** IDs of this instance and others, and of their messages and events. */
  ids: readonly string[]
}

/** Operations that end an instance or its token. They are not called for `keptIds`. */
const ENDS = new Set(['deleteInstance', 'replaceToken'])

const JUNK_IDS = ['', 'x', '%00', '%zz', '%ff', '..', '%2e%2e%2f', 'msg_1', 'evt_1', 'inst_1', 'text', "' or 1=1 --"]
const JUNK_TEXTS = [
  '',
  'x',
  '\ud800',
  '\u0000',
  '1@g.us',
  '../../etc/passwd',
  '2026-13-45T99:99:99Z',
  '{{7*7}}',
  '%s%n',
]
const GOOD_TEXTS = [
  '5511987654321',
  '120363041234567890@g.us',
  'https://example.com/hook',
  '2026-01-01T00:00:00Z',
  'Shop',
]
const EVIL_URLS = [
  'http://127.0.0.1/',
  'http://[::ffff:169.254.169.254]/',
  'http://2130706433/',
  'javascript:alert(1)',
  'https://a:b@c/',
]
const EVIL_BODIES = [
  '',
  'null',
  '{',
  '[]',
  '"x"',
  '{"to":',
  '\ufeff{}',
  '{"__proto__":{"admin":true}}',
  '{"to":1e999}',
  '[[[[',
]

const junkText = fc.oneof(
  fc.constantFrom(...JUNK_TEXTS, ...EVIL_URLS),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ maxLength: 5_000 }),
)
const junk = fc.oneof(junkText, fc.constantFrom<unknown>(null, 0, -0, 1e308, true, [], {}), fc.jsonValue())
const headerValue = fc.string({ maxLength: 30 }).map(text => text.replaceAll(/[^\x20-\x7e]/g, '_'))

const headers = fc.record(
  {
    'content-type': fc.oneof(
      { weight: 12, arbitrary: fc.constant('application/json') },
      {
        weight: 1,
        arbitrary: fc.constantFrom('text/plain', 'application/json;', ';', 'a/b;c=d', 'multipart/form-data'),
      },
      { weight: 1, arbitrary: headerValue },
    ),
    'x-idempotency-key': fc.oneof(fc.constantFrom('k', 'x'.repeat(256), ''), headerValue),
    'x-request-id': headerValue,
    'x-forwarded-for': fc.constantFrom('127.0.0.1', '::1', 'x'),
    'content-encoding': fc.constantFrom('identity', 'gzip', ''),
    accept: fc.constantFrom('text/html', 'text/event-stream', '*/*', ''),
    'accept-version': headerValue,
    cookie: fc.oneof(fc.constantFrom(`pombal_session=${'A'.repeat(43)}`, 'pombal_session='), headerValue),
    origin: fc.constantFrom('null', 'https://evil.example', 'http://127.0.0.1'),
  },
  { requiredKeys: ['content-type'] },
)

/** Mostly the right key, because most code runs only after the key is accepted. */
const authorization = fc.oneof(
  { weight: 18, arbitrary: fc.constant('right') },
  { weight: 1, arbitrary: fc.constant('none') },
  { weight: 1, arbitrary: fc.oneof(fc.constantFrom('Bearer', 'Basic x', 'Bearer x y'), headerValue) },
)

/** Requests to every operation of the document: most parts of a request are valid, and any part may be mutated. */
export function hostileCalls(document: Document, world: World): fc.Arbitrary<HostileCall> {
  const id = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...world.ids) },
    { weight: 1, arbitrary: fc.constantFrom(...JUNK_IDS) },
    {
      weight: 1,
      arbitrary: fc.string({ unit: 'binary', maxLength: 40 }).map(text => encodeURIComponent(text.toWellFormed())),
    },
    { weight: 1, arbitrary: fc.string({ maxLength: 40 }).map(text => text.replaceAll(/[\s\p{Cc}]/gu, '_')) },
  )
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      callOf(document, world, id, method.toUpperCase(), path, operation),
    ),
  )
  const elsewhere = fc.record<HostileCall>({
    method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD'),
    target: id.map(text => `/${text}`),
    headers,
    body: fc.constantFrom(...EVIL_BODIES),
    authorization,
  })
  return fc.oneof(...operations, elsewhere)
}

function callOf(
  document: Document,
  { ownId, keptIds }: World,
  id: fc.Arbitrary<string>,
  method: string,
  path: string,
  operation: Operation,
): fc.Arbitrary<HostileCall> {
  const isFatal = ENDS.has(operation.operationId)
  const pathIds = fc.array(id, { minLength: 2, maxLength: 2 })
  const first = isFatal ? id : fc.oneof({ weight: 3, arbitrary: fc.constant(ownId) }, { weight: 1, arbitrary: id })
  const otherMethod = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'HEAD', 'OPTIONS')
  return fc.record<HostileCall>({
    method: isFatal
      ? fc.constant(method)
      : fc.oneof({ weight: 12, arbitrary: fc.constant(method) }, { weight: 1, arbitrary: otherMethod }),
    target: fc
      .tuple(first, pathIds, queryOf(operation, id))
      .map(
        ([own, others, query]) =>
          [own, ...others].reduce((filled, value) => filled.replace(/\{\w+\}/, () => value), path) + query,
      )
      .filter(target => !isFatal || !keptIds.some(kept => target.includes(kept))),
    headers,
    body: bodyOf(document, operation),
    authorization,
  })
}

function queryOf({ parameters = [] }: Operation, id: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const known = parameters.filter(parameter => parameter.in === 'query')
  const value = (schema: Schema | undefined) =>
    fc.oneof(
      plausible({}, schema ?? {}).map(good => encodeURIComponent(String(good).toWellFormed())),
      fc.constantFrom('', '1', '0', '-1', '1e9', '%00', '%', 'MQ', '%ed%a0%80'),
      id,
    )
  const pairs = [
    ...known.map(({ name, schema }) => ({ name, schema })),
    { name: '__proto__', schema: undefined },
    { name: 'x[]', schema: undefined },
  ]
  return fc
    .array(fc.oneof(...pairs.map(({ name, schema }) => value(schema).map(text => `${name}=${text}`))), { maxLength: 4 })
    .map(given => (given.length === 0 ? '' : `?${given.join('&')}`))
}

function bodyOf(document: Document, { requestBody }: Operation): fc.Arbitrary<string> {
  const schema = requestBody?.content['application/json']?.schema
  const { properties = {} } = schema ? resolve(document, schema) : {}
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, field]) => [
      name,
      fc.oneof({ weight: 6, arbitrary: plausible(document, field) }, { weight: 1, arbitrary: junk }),
    ]),
  )
  const object = fc
    .tuple(
      fc.record(fields, { requiredKeys: [] }),
      fc.dictionary(fc.constantFrom('__proto__', 'constructor', 'id', 'x'), junk, { maxKeys: 1 }),
    )
    .map(([known, other]) => JSON.stringify({ ...known, ...other }))
  return fc.oneof(
    { weight: 10, arbitrary: object },
    { weight: 1, arbitrary: fc.json() },
    { weight: 1, arbitrary: fc.constantFrom(...EVIL_BODIES) },
    { weight: 1, arbitrary: fc.tuple(object, fc.nat(200)).map(([text, at]) => text.slice(0, at)) },
  )
}

/** A value that fits the schema, or nearly. */
function plausible(document: Partial<Document>, given: Schema): fc.Arbitrary<unknown> {
  const schema = resolve(document, given)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  const types = [schema.type ?? 'string'].flat()
  return fc.oneof(
    ...types.map((type): fc.Arbitrary<unknown> => {
      if (type === 'integer' || type === 'number')
        return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 1_000 })
      if (type === 'boolean') return fc.boolean()
      if (type === 'null') return fc.constant(null)
      if (type === 'object') return fc.constant({})
      return fc.oneof(fc.constantFrom(...(schema.examples ?? []), ...GOOD_TEXTS), fc.constantFrom(...EVIL_URLS))
    }),
  )
}

function resolve(document: Partial<Document>, schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : ((document.components?.schemas?.[name] as Schema | undefined) ?? {})
}
